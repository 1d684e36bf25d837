#include "model/cpu/roof.h"

#include "model/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "model/cpu/avx2_begin.h"

namespace skein::model {
namespace avx2 {
namespace {

constexpr int kChains = 12;  // enough to hide latency, few enough for the registers

std::uint64_t spin_fma() {
    __m256 acc[kChains];
    for (auto& a : acc) a = _mm256_set1_ps(1.0F);
    const __m256 factor = _mm256_set1_ps(0.999F);
    for (std::uint64_t i = 0; i < kSpinRounds; ++i) {
        for (auto& a : acc) a = _mm256_fmadd_ps(a, factor, factor);
        asm volatile("" ::: "memory");  // the rounds may not be folded into one
    }
    float sink = 0;
    for (const auto& a : acc) sink += _mm256_cvtss_f32(a);
    return sink == 0.0F ? 0 : kSpinRounds * kChains * 16;
}

std::uint64_t spin_madd() {
    __m256i acc[kChains];
    for (auto& a : acc) a = _mm256_setzero_si256();
    __m256i factor = _mm256_set1_epi16(3);
    for (std::uint64_t i = 0; i < kSpinRounds; ++i) {
        for (auto& a : acc) {
            asm volatile("" : "+x"(factor));  // the product is computed anew each time
            a = _mm256_add_epi32(a, _mm256_madd_epi16(factor, factor));
        }
    }
    int sink = 0;
    for (const auto& a : acc) sink |= _mm256_cvtsi256_si32(a);
    return sink == 1 ? 0 : kSpinRounds * kChains * 32;
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
    if (has_avx2()) return avx2::spin_fma();
#endif
    return 0;
}

std::uint64_t spin_madd() {
#if defined(__x86_64__)
    if (has_avx2()) return avx2::spin_madd();
#endif
    return 0;
}

}  // namespace skein::model
