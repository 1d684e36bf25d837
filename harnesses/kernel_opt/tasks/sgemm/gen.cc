// Inputs of sgemm from a seed. Self-contained: a published task's inputs never change.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// splitmix64's finaliser (Steele, Lea, Flood 2014): every counter gives independent bits.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Integer sums and single multiplications or divisions only: the same bits on every machine.

// Nearly normal with unit variance: the sum of four uniform 16-bit fields, centred.
float normal(std::uint64_t bits) {
    const std::int64_t sum = static_cast<std::int64_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                                       (bits >> 32 & 0xffff) + (bits >> 48));
    return static_cast<float>(sum - 2 * 65535) * (1.0f / 37837.0f);
}

// In (0, 1], never zero.
float unit(std::uint64_t bits) {
    return static_cast<float>((bits >> 40) + 1) * (1.0f / 16777216.0f);
}

// Element `index` of a buffer; `progress` in [0, 1) is how far along the reduced axis it lies.
float element(const char* distribution, std::uint64_t stream, std::int64_t index, float progress) {
    const std::uint64_t bits = mix(stream + static_cast<std::uint64_t>(index));
    const auto is = [distribution](const char* name) { return !std::strcmp(distribution, name); };
    if (is("normal")) return normal(bits);
    if (is("uniform_offset")) return static_cast<float>((bits >> 40) + (1 << 24)) / 16777216.0f;
    if (is("scaled_small")) return normal(bits) * 1e-3f;
    if (is("scaled_large")) return normal(bits) * 1e3f;
    if (is("heavy_tail")) return normal(bits) / unit(mix(bits));
    if (is("constant")) return unit(mix(stream)) * 3.0f;
    if (is("mixed_amplitude")) return normal(bits) * (progress < 0.5f ? 1e-3f : 1e3f);
    std::abort();
}

}  // namespace

// `progress` runs along the reduced axis of both matrices.
extern "C" void skein_generate(const std::int64_t* sizes, std::uint64_t seed,
                               const char* distribution, void* const* inputs) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    float* a = static_cast<float*>(inputs[0]);
    float* b = static_cast<float*>(inputs[1]);
    const std::uint64_t a_stream = mix(seed ^ mix(1)), b_stream = mix(seed ^ mix(2));
    for (std::int64_t p = 0; p < k; ++p) {
        const float progress = static_cast<float>(p) / static_cast<float>(k);
        for (std::int64_t i = 0; i < m; ++i) {
            a[i * k + p] = element(distribution, a_stream, i * k + p, progress);
        }
        for (std::int64_t j = 0; j < n; ++j) {
            b[p * n + j] = element(distribution, b_stream, p * n + j, 0);
        }
    }
}
