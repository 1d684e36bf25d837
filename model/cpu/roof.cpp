#include "model/cpu/roof.h"

#include "model/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <utility>

#include "model/cpu/avx2_begin.h"

namespace skein::model {
namespace avx2 {
namespace {

/// Enough chains to hide latency, few enough for the registers.
using Chains = std::make_index_sequence<12>;

/// Makes the compiler compute a register's value anew, and leave it in its register.
template <typename Register>
void keep(Register& value) {
    asm volatile("" : "+x"(value));
}

// The chains are elements of a pack, not of an array: GCC 12 writes an array's back to memory in
// every round, which halves what is measured.

template <std::size_t... Chain>
std::uint64_t spin_fma(std::index_sequence<Chain...>) {
    const __m256 factor = _mm256_set1_ps(0.999F);
    const auto round = [&](auto... a) {
        for (std::uint64_t i = 0; i < kSpinRounds; ++i)
            ((a = _mm256_fmadd_ps(a, factor, factor), keep(a)), ...);
        return (_mm256_cvtss_f32(a) + ...);
    };
    const float sink = round(((void)Chain, _mm256_set1_ps(1.0F))...);
    return sink == 0.0F ? 0 : kSpinRounds * sizeof...(Chain) * 16;
}

template <std::size_t... Chain>
std::uint64_t spin_madd(std::index_sequence<Chain...>) {
    const __m256i factor = _mm256_set1_epi16(3);
    const auto round = [&](auto... a) {
        for (std::uint64_t i = 0; i < kSpinRounds; ++i)
            ((a = _mm256_add_epi32(a, _mm256_madd_epi16(a, factor)), keep(a)), ...);
        return (_mm256_cvtsi256_si32(a) | ...);
    };
    const int sink = round(((void)Chain, _mm256_setzero_si256())...);
    return sink == 1 ? 0 : kSpinRounds * sizeof...(Chain) * 32;
}

}  // namespace
}  // namespace avx2
}  // namespace skein::model

#include "model/cpu/avx2_end.h"
#endif

namespace skein::model {
namespace {

bool has_avx2() {
    return available_kernels().back()->isa == Isa::avx2;
}

}  // namespace

std::uint64_t read_all(std::span<const std::uint64_t> words) {
    const std::size_t quarter = words.size() / 4;
    std::uint64_t sums[4] = {0, 0, 0, 0};
    for (std::size_t i = 0; i < quarter; i += 8)
        for (std::size_t s = 0; s < 4; ++s)
            for (std::size_t k = 0; k < 8 && i + k < quarter; ++k)
                sums[s] += words[s * quarter + i + k];
    return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

std::uint64_t spin_fma() {
#if defined(__x86_64__)
    if (has_avx2()) return avx2::spin_fma(avx2::Chains{});
#endif
    return 0;
}

std::uint64_t spin_madd() {
#if defined(__x86_64__)
    if (has_avx2()) return avx2::spin_madd(avx2::Chains{});
#endif
    return 0;
}

}  // namespace skein::model
