#pragma once
// What the AVX2 sources share: the exponential and sums over lanes, in the order of the definition.
// Include inside a target region (see kernels_avx2.cpp), after the standard headers.

#include <immintrin.h>

#include <cstddef>
#include <type_traits>

#include "model/cpu/kernels.h"
#include "model/cpu/math.h"
#include "model/cpu/options.h"

namespace skein::model::avx2 {

/// exp_f32 in 8 lanes, bit for bit.
inline __m256 exp8(__m256 x) {
    using namespace exp_constants;
    const __m256 lowest = _mm256_set1_ps(kLowest);
    const __m256 clamped = _mm256_min_ps(_mm256_set1_ps(kHighest), _mm256_max_ps(lowest, x));
    const __m256 round = _mm256_set1_ps(kRound);
    const __m256 shifted = _mm256_fmadd_ps(clamped, _mm256_set1_ps(kLog2E), round);
    const __m256 n = _mm256_sub_ps(shifted, round);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), clamped);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
    __m256 p = _mm256_set1_ps(kPoly[0]);
    for (int i = 1; i < 6; ++i) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kPoly[i]));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0F));
    const __m256i scale = _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23),
                                           _mm256_set1_epi32(0x3F800000));
    const __m256 result = _mm256_mul_ps(p, _mm256_castsi256_ps(scale));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, lowest, _CMP_LT_OQ), result);
}

/// ((0+4)+(2+6)) + ((1+5)+(3+7))
inline float sum_of_lanes(__m256 v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float max_of_lanes(__m256 v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// All ones in the lanes below `count`.
inline __m256 lanes_below(int count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane));
}

/// Eight neighbouring stored elements as floats, exactly.
template <KvType Type>
__m256 load8(const std::byte* data, std::ptrdiff_t element) {
    if constexpr (Type == KvType::f32) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(data) + element);
    } else if constexpr (Type == KvType::int8) {
        const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(data + element));
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(packed));
    } else {
        const __m128i packed =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 2 * element));
        if constexpr (Type == KvType::f16) return _mm256_cvtph_ps(packed);
        if constexpr (Type == KvType::bf16)
            return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(packed), 16));
        return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(packed));
    }
}

/// Asks for a share of the memory ahead, for the second level: the first is full of the block at
/// hand. `part` runs from 0 to n_parts - 1.
inline void fetch_part(const Ahead& ahead, int part, int n_parts) {
    constexpr std::size_t kLine = 64;
    const std::size_t lines = (ahead.bytes + kLine - 1) / kLine;
    const auto at = [&](int i) {
        return lines * static_cast<std::size_t>(i) / static_cast<std::size_t>(n_parts);
    };
    for (std::size_t line = at(part); line < at(part + 1); ++line)
        _mm_prefetch(reinterpret_cast<const char*>(ahead.begin + line * kLine), _MM_HINT_T1);
}

/// Calls `body` with the type as a compile-time constant.
template <typename Body>
void with_type(KvType type, const Body& body) {
    switch (type) {
        case KvType::f32:
            return body(std::integral_constant<KvType, KvType::f32>{});
        case KvType::f16:
            return body(std::integral_constant<KvType, KvType::f16>{});
        case KvType::bf16:
            return body(std::integral_constant<KvType, KvType::bf16>{});
        case KvType::int16:
        case KvType::int13:
            return body(std::integral_constant<KvType, KvType::int16>{});
        case KvType::int8:
            return body(std::integral_constant<KvType, KvType::int8>{});
    }
}

}  // namespace skein::model::avx2
