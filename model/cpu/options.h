#pragma once
// Choices of the CPU back end that are part of the engine's options.

#include <cstdint>

namespace skein::model {

/// The instruction sets for which there is a table of kernels. All give the same bits; `automatic`
/// is the fastest that this CPU has.
enum class Isa : std::uint8_t { automatic, scalar, avx2 };

/// How keys and values are kept. f16 halves memory and traffic of long contexts; f32 is for
/// comparisons with exact arithmetic. They give different bits.
enum class KvType : std::uint8_t { f32, f16 };

}  // namespace skein::model
