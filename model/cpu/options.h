#pragma once
// Choices of the CPU back end that are part of the engine's options.

#include <cstddef>
#include <cstdint>

namespace skein::model {

/// The instruction sets for which there is a table of kernels. All give the same bits; `automatic`
/// is the fastest that this CPU has.
enum class Isa : std::uint8_t { automatic, scalar, avx2 };

/// How keys and values are kept; each type gives other bits. int16 and int8 are codes with one f32
/// scale for each token and head. int16 keeps about 15 bits even where a few channels of a key are
/// much larger than the others, which f16 and bf16 do not; f32 is for comparisons with exact
/// arithmetic; int8 takes what other engines' q8_0 takes.
enum class KvType : std::uint8_t { f32, f16, bf16, int16, int8 };

constexpr std::size_t element_bytes(KvType type) {
    return type == KvType::f32 ? 4 : type == KvType::int8 ? 1 : 2;
}
constexpr bool has_scales(KvType type) {
    return type == KvType::int16 || type == KvType::int8;
}
constexpr const char* kv_type_name(KvType type) {
    constexpr const char* kNames[] = {"f32", "f16", "bf16", "int16", "int8"};
    return kNames[static_cast<int>(type)];
}

}  // namespace skein::model
