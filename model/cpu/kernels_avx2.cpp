// The AVX2 table, except for the projections (matmul_avx2.cpp) and attention (attention_avx2.cpp).
// Each function does what its namesake in reference_ops.cpp does, 8 elements at a time.

#include "model/cpu/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>

#include "model/cpu/attention_avx2.h"
#include "model/cpu/math.h"
#include "model/cpu/matmul_avx2.h"

#include "model/cpu/avx2_begin.h"

#include "model/cpu/avx2.h"

namespace skein::model {
namespace avx2 {
namespace {

constexpr float kLargestCode = 32767.0F;
constexpr float kSmallestAmplitude = 1e-30F;

__m256 absolute(__m256 x) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
}

void rmsnorm(const float* x, const float* weight, int n, float eps, float* out) {
    __m256 squares = _mm256_setzero_ps();
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        squares = _mm256_fmadd_ps(v, v, squares);
    }
    if (i < n) {
        const __m256i mask = _mm256_castps_si256(lanes_below(n - i));
        const __m256 v = _mm256_maskload_ps(x + i, mask);
        squares = _mm256_fmadd_ps(v, v, squares);
    }
    const float mean = sum_of_lanes(squares) / static_cast<float>(n);
    const float scale = 1.0F / std::sqrt(mean + eps);
    const __m256 factor = _mm256_set1_ps(scale);
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
        _mm256_storeu_ps(out + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(weight + i)));
    }
    for (; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

struct Amplitude {
    __m256 inverse;
    float scale;
};

Amplitude amplitude_of(__m256 absolutes) {
    const float largest = max_of_lanes(absolutes);
    if (largest < kSmallestAmplitude) return {_mm256_setzero_ps(), 0.0F};
    return {_mm256_set1_ps(kLargestCode / largest), largest / kLargestCode};
}

/// Eight floats to integers, rounded to nearest even after the clamp of the definition.
__m256i to_codes(__m256 x, __m256 inverse) {
    const __m256 largest = _mm256_set1_ps(kLargestCode);
    const __m256 smallest = _mm256_set1_ps(-kLargestCode);
    const __m256 scaled = _mm256_mul_ps(x, inverse);
    return _mm256_cvtps_epi32(_mm256_max_ps(smallest, _mm256_min_ps(largest, scaled)));
}

void quantize_row(const float* x, int n, std::int16_t* codes, float* scales, float* sums) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (int b = 0; b < n / kBlockColumns; ++b, x += kBlockColumns, codes += kBlockColumns) {
        const __m256 v0 = _mm256_loadu_ps(x);
        const __m256 v1 = _mm256_loadu_ps(x + 8);
        const __m256 v2 = _mm256_loadu_ps(x + 16);
        const __m256 v3 = _mm256_loadu_ps(x + 24);
        __m256 largest = _mm256_max_ps(absolute(v0), _mm256_setzero_ps());
        largest = _mm256_max_ps(absolute(v1), largest);
        largest = _mm256_max_ps(absolute(v2), largest);
        largest = _mm256_max_ps(absolute(v3), largest);
        const Amplitude range = amplitude_of(largest);
        // Packing works in 128-bit halves; the permutation restores the order.
        const __m256i low = _mm256_permute4x64_epi64(
            _mm256_packs_epi32(to_codes(v0, range.inverse), to_codes(v1, range.inverse)), 0xD8);
        const __m256i high = _mm256_permute4x64_epi64(
            _mm256_packs_epi32(to_codes(v2, range.inverse), to_codes(v3, range.inverse)), 0xD8);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + 16), high);
        const __m256i pairs =
            _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
        __m128i four =
            _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
        scales[b] = range.scale;
        sums[b] = static_cast<float>(_mm_cvtsi128_si32(four)) * scales[b];
    }
}

void rope_interleaved(float* x, const float* cosines, const float* sines, int n) {
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 c =
            _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cosines + i / 2)), twice);
        const __m256 s =
            _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sines + i / 2)), twice);
        const __m256 v = _mm256_loadu_ps(x + i);
        const __m256 swapped = _mm256_permute_ps(v, 0xB1);
        const __m256 first = _mm256_fmsub_ps(v, c, _mm256_mul_ps(swapped, s));
        const __m256 second = _mm256_fmadd_ps(swapped, s, _mm256_mul_ps(v, c));
        _mm256_storeu_ps(x + i, _mm256_blend_ps(first, second, 0xAA));
    }
    if (i < n) scalar_kernels().rope_interleaved(x + i, cosines + i / 2, sines + i / 2, n - i);
}

void rope_half_split(float* x, const float* cosines, const float* sines, int n) {
    const int half = n / 2;
    int i = 0;
    for (; i + 8 <= half; i += 8) {
        const __m256 c = _mm256_loadu_ps(cosines + i);
        const __m256 s = _mm256_loadu_ps(sines + i);
        const __m256 first = _mm256_loadu_ps(x + i);
        const __m256 second = _mm256_loadu_ps(x + half + i);
        _mm256_storeu_ps(x + i, _mm256_fmsub_ps(first, c, _mm256_mul_ps(second, s)));
        _mm256_storeu_ps(x + half + i, _mm256_fmadd_ps(first, s, _mm256_mul_ps(second, c)));
    }
    for (; i < half; ++i) {
        const float first = x[i];
        const float second = x[half + i];
        x[i] = fma_f32(first, cosines[i], -(second * sines[i]));
        x[half + i] = fma_f32(first, sines[i], second * cosines[i]);
    }
}

void swiglu(const float* gate, const float* up, int n, float* out) {
    const __m256 one = _mm256_set1_ps(1.0F);
    const __m256 sign = _mm256_set1_ps(-0.0F);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 g = _mm256_loadu_ps(gate + i);
        const __m256 denominator = _mm256_add_ps(one, exp8(_mm256_xor_ps(g, sign)));
        const __m256 silu = _mm256_div_ps(g, denominator);
        _mm256_storeu_ps(out + i, _mm256_mul_ps(silu, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; ++i) out[i] = silu_f32(gate[i]) * up[i];
}

void swigluoai(const float* gate, const float* up, int n, float alpha, float limit, float* out) {
    const __m256 one = _mm256_set1_ps(1.0F);
    const __m256 sign = _mm256_set1_ps(-0.0F);
    const __m256 most = _mm256_set1_ps(limit);
    const __m256 least = _mm256_set1_ps(-limit);
    const __m256 slope = _mm256_set1_ps(alpha);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 g = _mm256_min_ps(most, _mm256_loadu_ps(gate + i));
        const __m256 u = _mm256_max_ps(least, _mm256_min_ps(most, _mm256_loadu_ps(up + i)));
        const __m256 power = exp8(_mm256_xor_ps(_mm256_mul_ps(slope, g), sign));
        const __m256 gated = _mm256_div_ps(g, _mm256_add_ps(one, power));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(gated, _mm256_add_ps(u, one)));
    }
    if (i < n) scalar_kernels().swigluoai(gate + i, up + i, n - i, alpha, limit, out + i);
}

void add(float* x, const float* y, int n) {
    int i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    for (; i < n; ++i) x[i] += y[i];
}

void add_scaled(float* x, const float* y, float factor, int n) {
    const __m256 f = _mm256_set1_ps(factor);
    int i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_fmadd_ps(f, _mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));
    for (; i < n; ++i) x[i] = fma_f32(factor, y[i], x[i]);
}

void scale(float* x, float factor, int n) {
    const __m256 f = _mm256_set1_ps(factor);
    int i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), f));
    for (; i < n; ++i) x[i] *= factor;
}

void merge(float& maximum, float& total, float* weighted, float block_maximum, float block_total,
           const float* block_weighted, int head_dim) {
    const float common = max_f32(maximum, block_maximum);
    const float old_factor = exp_f32(maximum - common);
    const float new_factor = exp_f32(block_maximum - common);
    total = fma_f32(block_total, new_factor, total * old_factor);
    const __m256 old8 = _mm256_set1_ps(old_factor);
    const __m256 new8 = _mm256_set1_ps(new_factor);
    for (int d = 0; d < head_dim; d += 8) {
        const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(weighted + d), old8);
        const __m256 added = _mm256_loadu_ps(block_weighted + d);
        _mm256_storeu_ps(weighted + d, _mm256_fmadd_ps(added, new8, kept));
    }
    maximum = common;
}

void finish(const float* weighted, float total, int head_dim, float* out) {
    const __m256 t = _mm256_set1_ps(total);
    for (int d = 0; d < head_dim; d += 8)
        _mm256_storeu_ps(out + d, _mm256_div_ps(_mm256_loadu_ps(weighted + d), t));
}

void encode(KvType type, const float* x, int n, std::byte* out, float& head_scale) {
    if (type != KvType::int16) return scalar_kernels().encode(type, x, n, out, head_scale);
    __m256 largest = _mm256_setzero_ps();
    for (int i = 0; i < n; i += 8)
        largest = _mm256_max_ps(absolute(_mm256_loadu_ps(x + i)), largest);
    const Amplitude range = amplitude_of(largest);
    for (int i = 0; i < n; i += 8) {
        const __m256i wide = to_codes(_mm256_loadu_ps(x + i), range.inverse);
        const __m128i packed =
            _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * static_cast<std::ptrdiff_t>(i)),
                         packed);
    }
    head_scale = range.scale;
}

void widen(KvType type, const std::byte* elements, int n, float* out) {
    with_type(type, [&](auto constant) {
        for (int i = 0; i < n; i += 8)
            _mm256_storeu_ps(out + i, load8<constant.value>(elements, i));
    });
}

}  // namespace
}  // namespace avx2

const CpuKernels* avx2_kernels() {
    static const CpuKernels table{Isa::avx2,
                                  "avx2",
                                  avx2::rmsnorm,
                                  avx2::quantize_row,
                                  avx2::matmul,
                                  avx2::rope_interleaved,
                                  avx2::rope_half_split,
                                  avx2::swiglu,
                                  avx2::swigluoai,
                                  avx2::add,
                                  avx2::add_scaled,
                                  avx2::scale,
                                  avx2::attend,
                                  avx2::merge,
                                  avx2::finish,
                                  avx2::score_blocks,
                                  avx2::bound_blocks,
                                  avx2::join_codes,
                                  avx2::encode,
                                  avx2::widen};
    return &table;
}

}  // namespace skein::model

#include "model/cpu/avx2_end.h"

#else

namespace skein::model {
const CpuKernels* avx2_kernels() {
    return nullptr;
}
}  // namespace skein::model

#endif
