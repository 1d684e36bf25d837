#pragma once
// Loops that do nothing but what bounds the kernels: reading memory, multiplying and adding.

#include <cstddef>
#include <cstdint>
#include <span>

namespace skein::model {

/// Sums all words, from four places at once. The sum only keeps the reads alive.
std::uint64_t read_all(std::span<const std::uint64_t> words);

/// Operations done by one call of spin_fma and spin_madd.
inline constexpr std::uint64_t kSpinRounds = 1U << 20U;

/// Rounds of 12 vector multiply-adds; returns how many floating point operations that was, or 0
/// when this CPU lacks AVX2.
std::uint64_t spin_fma();
/// Rounds of 12 16-bit multiply-add-accumulates; returns how many integer operations that was, or
/// 0.
std::uint64_t spin_madd();

}  // namespace skein::model
