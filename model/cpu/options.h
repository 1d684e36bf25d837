#pragma once
// Choices of the CPU back end that are part of the engine's options.

#include <cstdint>

namespace skein::model {

/// The instruction sets for which there is a table of kernels. All give the same bits; `automatic`
/// is the fastest that this CPU has.
enum class Isa : std::uint8_t { automatic, scalar, avx2 };

/// How keys and values are kept. int16 (codes with one scale for each token and head) halves memory
/// and traffic of long contexts and keeps about 15 bits even where a few channels of a key are much
/// larger than the others, which f16 does not; f32 is for comparisons with exact arithmetic. They
/// give different bits.
enum class KvType : std::uint8_t { f32, int16 };

}  // namespace skein::model
