// Inputs of histogram from a seed. Self-contained: a published task's inputs never change.
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

// The number of leading zero bits is geometric: value 0 takes half, the next a quarter, and so on.
std::uint8_t skewed(std::uint64_t bits, std::uint64_t shift) {
    const auto rank = static_cast<std::uint64_t>(__builtin_clzll(bits | 1));
    return static_cast<std::uint8_t>(rank * 37 + shift);
}

std::uint8_t element(const char* distribution, std::uint64_t stream, std::int64_t index,
                     std::int64_t n) {
    const std::uint64_t bits = mix(stream + static_cast<std::uint64_t>(index)), any = mix(stream);
    const auto is = [distribution](const char* name) { return !std::strcmp(distribution, name); };
    if (is("skewed")) return skewed(bits, any);
    if (is("uniform")) return static_cast<std::uint8_t>(bits);
    if (is("one_value")) return static_cast<std::uint8_t>(any);
    if (is("ascending")) return static_cast<std::uint8_t>(index * 256 / n);
    if (is("runs")) {
        const std::int64_t run = index / static_cast<std::int64_t>(3 + any % 29);
        return static_cast<std::uint8_t>(mix(any + static_cast<std::uint64_t>(run)));
    }
    std::abort();
}

}  // namespace

extern "C" void skein_generate(const std::int64_t* sizes, std::uint64_t seed,
                               const char* distribution, void* const* inputs) {
    const std::int64_t n = sizes[0];
    std::uint8_t* data = static_cast<std::uint8_t*>(inputs[0]);
    const std::uint64_t stream = mix(seed ^ mix(1));
    for (std::int64_t i = 0; i < n; ++i) data[i] = element(distribution, stream, i, n);
}
