// Block scores of the index branch: dot products of a few query rows with 128 transposed keys, and
// the largest of each run of tokens. No score leaves the registers.

#include "model/cpu/attention_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "model/cpu/math.h"

#include "model/cpu/avx2_begin.h"

#include "model/cpu/avx2.h"

namespace skein::model::avx2 {
namespace {

constexpr int kLanes = 8;

/// Scores of R rows against V vectors of tokens from `vector` on, folded into `best`.
template <KvType Type, int R, int V>
void fold_vectors(const IndexBlock& block, const float* queries, const int* visible, int vector,
                  __m256* best) {
    __m256 acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = _mm256_setzero_ps();
    std::ptrdiff_t element = strip_at(block.dim, kBlockTokens, 0, vector * kLanes);
    for (int d = 0; d < block.dim; ++d, element += kStripColumns) {
        __m256 q[R];
        for (int r = 0; r < R; ++r)
            q[r] = _mm256_broadcast_ss(queries + static_cast<std::ptrdiff_t>(r) * block.dim + d);
        for (int v = 0; v < V; ++v) {
            const __m256 k = load8<Type>(block.keys, element + v * kLanes);
            for (int r = 0; r < R; ++r) acc[r][v] = _mm256_fmadd_ps(q[r], k, acc[r][v]);
        }
    }
    const __m256 hidden = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    for (int v = 0; v < V; ++v) {
        const int first = (vector + v) * kLanes;
        __m256 scale = _mm256_set1_ps(1.0F);
        if (block.key_scales != nullptr) scale = _mm256_loadu_ps(block.key_scales + first);
        for (int r = 0; r < R; ++r) {
            __m256 score = acc[r][v];
            if (block.key_scales != nullptr) score = _mm256_mul_ps(score, scale);
            if (visible[r] < first + kLanes)
                score = _mm256_blendv_ps(hidden, score, lanes_below(visible[r] - first));
            best[r] = _mm256_max_ps(score, best[r]);  // NaN scores leave `best` as it is
        }
    }
}

template <KvType Type, int R>
void score_rows(const IndexBlock& block, int row) {
    constexpr int kWide = 4;
    const float* queries = block.queries + static_cast<std::ptrdiff_t>(row) * block.dim;
    const int* visible = block.visible + row;
    const int most = *std::max_element(visible, visible + R);
    const int run = block.block_tokens / kLanes;
    const __m256 hidden = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    for (int first = 0, out = 0; first < kBlockTokens / kLanes; first += run, ++out) {
        __m256 best[R];
        for (int r = 0; r < R; ++r) best[r] = hidden;
        const int last = std::min(first + run, (most + kLanes - 1) / kLanes);
        int v = first;
        for (; v + kWide <= last; v += kWide)
            fold_vectors<Type, R, kWide>(block, queries, visible, v, best);
        for (; v < last; ++v) fold_vectors<Type, R, 1>(block, queries, visible, v, best);
        for (int r = 0; r < R; ++r)
            block.best[(row + r) * block.stride + out] = max_of_lanes(best[r]);
    }
}

/// Which keys are scored: joined codes, or the high bytes of planes.
enum class Codes { joined, high };

/// A pair of channels of 8 tokens.
template <Codes C>
__m256i load_codes(const std::byte* keys, std::ptrdiff_t vector) {
    if constexpr (C == Codes::joined)
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys) + vector);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(keys) + vector));
}

/// Folds one vector of scores of one row.
inline void fold_scores(const IndexBlock& block, __m256 score, int vector, int visible,
                        __m256& best) {
    const int first = vector * kLanes;
    score = _mm256_mul_ps(score, _mm256_loadu_ps(block.key_scales + first));
    if (visible < first + kLanes) {
        const __m256 hidden = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
        score = _mm256_blendv_ps(hidden, score, lanes_below(visible - first));
    }
    best = _mm256_max_ps(score, best);
}

/// As fold_vectors, on codes: a 256-bit vector holds a pair of channels of 8 tokens. `unit`: what a
/// high byte counts.
template <Codes C, int R, int V>
void fold_codes(const IndexBlock& block, float unit, int row, int vector, __m256* best) {
    __m256i acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = _mm256_setzero_si256();
    const std::int16_t* queries = block.query_codes + static_cast<std::ptrdiff_t>(row) * block.dim;
    constexpr int kVectorsARow = kStripTokens / kLanes;
    const int pairs = block.dim / 2;
    const std::ptrdiff_t strip = static_cast<std::ptrdiff_t>(pairs) * kVectorsARow;
    std::ptrdiff_t at = vector / kVectorsARow * strip + vector % kVectorsARow;
#pragma GCC unroll 2
    for (int pair = 0; pair < pairs; ++pair, at += kVectorsARow) {
        __m256i k[V];
        for (int v = 0; v < V; ++v)
            k[v] = load_codes<C>(block.keys, at + v / kVectorsARow * strip + v % kVectorsARow);
        for (int r = 0; r < R; ++r) {
            std::int32_t two = 0;
            std::memcpy(&two, queries + static_cast<std::ptrdiff_t>(r) * block.dim + 2 * pair, 4);
            const __m256i q = _mm256_set1_epi32(two);
            for (int v = 0; v < V; ++v)
                acc[r][v] = _mm256_add_epi32(acc[r][v], _mm256_madd_epi16(k[v], q));
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) {
            __m256 score = _mm256_cvtepi32_ps(acc[r][v]);
            if constexpr (C == Codes::high)
                score = _mm256_fmadd_ps(score, _mm256_set1_ps(unit),
                                        _mm256_set1_ps(block.margins[row + r]));
            fold_scores(block, score, vector + v, block.visible[row + r], best[r]);
        }
}

/// Rows of one pass over a page, at most: their codes and a strip share the first level of the
/// cache.
constexpr int kPassRows = 48;

/// One strip of tokens for all rows: it stays in the first level of the cache meanwhile.
template <Codes C, int V>
void score_strip(const IndexBlock& block, float unit, int row, int n_rows, int vector,
                 __m256* best) {
    int r = 0;
    for (; r + 4 <= n_rows; r += 4) fold_codes<C, 4, V>(block, unit, row + r, vector, best + r);
    for (; r + 2 <= n_rows; r += 2) fold_codes<C, 2, V>(block, unit, row + r, vector, best + r);
    for (; r < n_rows; ++r) fold_codes<C, 1, V>(block, unit, row + r, vector, best + r);
}

template <Codes C>
void score_pass(const IndexBlock& block, int row, int n_rows) {
    __m256 best[kPassRows];
    const int most = *std::max_element(block.visible + row, block.visible + row + n_rows);
    const int run = block.block_tokens / kLanes;
    const auto unit = static_cast<float>(1 << low_bits(block.dim));
    const int wide = n_rows >= 4 ? 2 : 4;  // 16 registers hold the sums, keys and a query
    for (int first = 0, out = 0; first < kBlockTokens / kLanes; first += run, ++out) {
        for (int r = 0; r < n_rows; ++r)
            best[r] = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
        const int last = std::min(first + run, (most + kLanes - 1) / kLanes);
        fetch_part(block.ahead, out, kBlockTokens / block.block_tokens);
        int v = first;
        if (wide == 4)
            for (; v + 4 <= last; v += 4) score_strip<C, 4>(block, unit, row, n_rows, v, best);
        for (; v + 2 <= last; v += 2) score_strip<C, 2>(block, unit, row, n_rows, v, best);
        for (; v < last; ++v) score_strip<C, 1>(block, unit, row, n_rows, v, best);
        for (int r = 0; r < n_rows; ++r)
            block.best[(row + r) * block.stride + out] = max_of_lanes(best[r]);
    }
}

template <Codes C>
void score_codes(const IndexBlock& block) {
    for (int row = 0; row < block.n_rows; row += kPassRows)
        score_pass<C>(block, row, std::min(kPassRows, block.n_rows - row));
}

}  // namespace

void score_blocks(const IndexBlock& block) {
    if (block.type == KvType::int13) return score_codes<Codes::joined>(block);
    with_type(block.type, [&](auto type) {
        int row = 0;
        for (; row + 3 <= block.n_rows; row += 3) score_rows<type.value, 3>(block, row);
        for (; row < block.n_rows; ++row) score_rows<type.value, 1>(block, row);
    });
}

void bound_blocks(const IndexBlock& block) {
    score_codes<Codes::high>(block);
}

void join_codes(const std::byte* planes, int dim, std::int16_t* codes) {
    const int n = dim * kBlockTokens;
    const __m128i bits = _mm_cvtsi32_si128(low_bits(dim));
    for (int i = 0; i < n; i += 16) {
        const auto load = [&](int at) {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes + at));
        };
        const __m256i high = _mm256_sll_epi16(_mm256_cvtepi8_epi16(load(i)), bits);
        const __m256i low = _mm256_cvtepu8_epi16(load(n + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + i), _mm256_add_epi16(high, low));
    }
}

}  // namespace skein::model::avx2

#include "model/cpu/avx2_end.h"

#endif
