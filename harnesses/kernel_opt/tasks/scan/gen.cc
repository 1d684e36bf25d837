// Inputs of scan from a seed. Self-contained: a published task's inputs never change.
// Magnitudes stay below 4096, so that 256 k of them cannot overflow 32 bits.
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

std::int32_t element(const char* distribution, std::uint64_t stream, std::int64_t index,
                     std::int64_t n) {
    const std::uint64_t bits = mix(stream + static_cast<std::uint64_t>(index));
    const auto is = [distribution](const char* name) { return !std::strcmp(distribution, name); };
    const auto wide = static_cast<std::int32_t>(bits >> 51) - 4095;
    if (is("uniform")) return wide;
    if (is("positive")) return static_cast<std::int32_t>(bits >> 52);
    if (is("small")) return static_cast<std::int32_t>(bits >> 62) - 1;
    if (is("constant")) return static_cast<std::int32_t>(mix(stream) >> 52) + 1;
    if (is("sparse")) return bits % 97 == 0 ? wide : 0;
    if (is("mixed_amplitude")) return index < n / 2 ? wide / 2048 : wide;
    std::abort();
}

}  // namespace

extern "C" void skein_generate(const std::int64_t* sizes, std::uint64_t seed,
                               const char* distribution, void* const* inputs) {
    const std::int64_t n = sizes[0];
    std::int32_t* x = static_cast<std::int32_t*>(inputs[0]);
    const std::uint64_t stream = mix(seed ^ mix(1));
    for (std::int64_t i = 0; i < n; ++i) x[i] = element(distribution, stream, i, n);
}
