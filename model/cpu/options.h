#pragma once
// Choices of the CPU back end that are part of the engine's options.

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace skein::model {

/// The instruction sets for which there is a table of kernels. All give the same bits; `automatic`
/// is the fastest that this CPU has.
enum class Isa : std::uint8_t { automatic, scalar, avx2 };

/// How keys and values are kept; each type gives other bits. int16 and int8 are codes with one f32
/// scale for each token and head. int16 keeps about 15 bits even where a few channels of a key are
/// much larger than the others, which f16 and bf16 do not; f32 is for comparisons with exact
/// arithmetic; int8 takes what other engines' q8_0 takes. int13 is for index keys alone:
/// codes so small that the dot product of two rows of n channels is exact in 32 bits (at most 4095
/// for 128 channels, see exact_dot_limit), which is twice as fast as floats and, on the channels
/// that matter, more precise than bf16.
enum class KvType : std::uint8_t { f32, f16, bf16, int16, int8, int13 };

constexpr std::size_t element_bytes(KvType type) {
    return type == KvType::f32 ? 4 : type == KvType::int8 ? 1 : 2;
}
/// The largest code whose square n times over stays below 2^31. Requires: n >= 1.
inline int exact_dot_limit(int n) {
    return static_cast<int>(std::sqrt(2147483647.0 / n));
}
/// Codes of int13 are stored in two bytes: code = high * 2^shift + low, with high in -128..127 and
/// low in 0..2^shift - 1, so that the high bytes alone bound a dot product.
inline int low_bits(int n) {
    int shift = 5;
    while (exact_dot_limit(n) >= 128 << shift) ++shift;
    return shift;
}
constexpr bool has_scales(KvType type) {
    return type == KvType::int16 || type == KvType::int8 || type == KvType::int13;
}
constexpr const char* kv_type_name(KvType type) {
    constexpr const char* kNames[] = {"f32", "f16", "bf16", "int16", "int8", "int13"};
    return kNames[static_cast<int>(type)];
}

}  // namespace skein::model
