// One block of keys and values for some query rows. Keys are transposed, so a vector holds the same
// channel of 8 tokens and no score needs a sum across lanes. Strip by strip, so that a strip stays
// in the first level of the cache while all rows pass over it; a few rows at a time, so that every
// loaded key and value is used for each of them.

#include "model/cpu/attention_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "model/cpu/math.h"

#include "model/cpu/avx2_begin.h"

#include "model/cpu/avx2.h"

namespace skein::model::avx2 {
namespace {

constexpr int kStripVectors = kStripColumns / 8;

/// A block and the scores of its rows.
struct Pass {
    const AttentionBlock* block;
    float* scores;  ///< [n_rows, 128], then the exponentials
    const float* query(int row) const {
        return block->queries + static_cast<std::ptrdiff_t>(row) * block->head_dim;
    }
    float* weighted(int row) const {
        return block->weighted + static_cast<std::ptrdiff_t>(row) * block->head_dim;
    }
    float* scores_of(int row) const {
        return scores + static_cast<std::ptrdiff_t>(row) * kBlockTokens;
    }
    int visible(int row) const { return block->visible[row]; }
    int least_visible(int row, int n_rows) const {
        return *std::min_element(block->visible + row, block->visible + row + n_rows);
    }
    int most_visible(int row, int n_rows) const {
        return *std::max_element(block->visible + row, block->visible + row + n_rows);
    }
};

/// Calls `body` with the first row of each group and their number as a compile-time constant. Three
/// rows keep 12 sums in flight, enough to hide the latency of a multiply-add.
template <typename Body>
void for_groups(int n_rows, const Body& body) {
    int row = 0;
    for (; row + 3 <= n_rows && n_rows - row != 4; row += 3)
        body(row, std::integral_constant<int, 3>{});
    if (n_rows - row == 4) body(row, std::integral_constant<int, 4>{});
    if (n_rows - row == 2) body(row, std::integral_constant<int, 2>{});
    if (n_rows - row == 1) body(row, std::integral_constant<int, 1>{});
}

/// Scores of R rows from `row` on against V vectors of 8 tokens, which lie in one strip.
template <KvType Type, int R, int V>
void score_vectors(const Pass& pass, int row, int first_vector) {
    __m256 acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = _mm256_setzero_ps();
    const std::byte* keys = pass.block->keys;
    const int head_dim = pass.block->head_dim;
    std::ptrdiff_t element =
        strip_at(head_dim, kBlockTokens, 0, pass.block->first + first_vector * 8);
    for (int d = 0; d < head_dim; ++d, element += kStripColumns) {
        __m256 q[R];
        for (int r = 0; r < R; ++r) q[r] = _mm256_broadcast_ss(pass.query(row + r) + d);
        for (int v = 0; v < V; ++v) {
            const __m256 k = load8<Type>(keys, element + v * 8);
            for (int r = 0; r < R; ++r) acc[r][v] = _mm256_fmadd_ps(q[r], k, acc[r][v]);
        }
    }
    if (pass.block->key_scales != nullptr)
        for (int v = 0; v < V; ++v) {
            const __m256 scale = _mm256_loadu_ps(pass.block->key_scales + (first_vector + v) * 8);
            for (int r = 0; r < R; ++r) acc[r][v] = _mm256_mul_ps(acc[r][v], scale);
        }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v)
            _mm256_storeu_ps(pass.scores_of(row + r) + (first_vector + v) * 8, acc[r][v]);
}

/// Scores of all rows that see something of the strip that begins with `first_vector`.
template <KvType Type>
void score_strip(const Pass& pass, int first_vector) {
    for_groups(pass.block->n_rows, [&](int row, auto rows) {
        constexpr int kRows = decltype(rows)::value;
        constexpr int kWide = kRows >= 4 ? 2 : 4;
        const int last =
            std::min(first_vector + kStripVectors, (pass.most_visible(row, kRows) + 7) / 8);
        int v = first_vector;
        for (; v + kWide <= last; v += kWide) score_vectors<Type, kRows, kWide>(pass, row, v);
        for (; v < last; ++v) score_vectors<Type, kRows, 1>(pass, row, v);
    });
}

/// Replaces the scores of a row by exp(score - maximum), times the scales of the values; those it
/// may not see become 0.
void exponentials(const Pass& pass, int r) {
    float* row = pass.scores_of(r);
    const int visible = pass.visible(r);
    const int vectors = (visible + 7) / 8;
    const __m256 mask = lanes_below(visible - (vectors - 1) * 8);
    float* tail = row + (vectors - 1) * 8;
    const __m256 hidden = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    _mm256_storeu_ps(tail, _mm256_blendv_ps(hidden, _mm256_loadu_ps(tail), mask));
    __m256 largest = _mm256_loadu_ps(row);
    for (int v = 1; v < vectors; ++v)
        largest = _mm256_max_ps(largest, _mm256_loadu_ps(row + v * 8));
    const float maximum = max_of_lanes(largest);
    const __m256 shift = _mm256_set1_ps(maximum);
    const float* scales = pass.block->value_scales;
    __m256 total = _mm256_setzero_ps();
    for (int v = 0; v < vectors; ++v) {
        __m256 p = exp8(_mm256_sub_ps(_mm256_loadu_ps(row + v * 8), shift));
        total = _mm256_add_ps(total, p);
        if (scales != nullptr) p = _mm256_mul_ps(p, _mm256_loadu_ps(scales + v * 8));
        _mm256_storeu_ps(row + v * 8, p);
    }
    pass.block->maximum[r] = maximum;
    pass.block->total[r] = sum_of_lanes(total);
}

/// Adds the tokens [begin, end), weighted, to 8 * D channels of R rows, which lie in one strip.
template <KvType Type, int R, int D>
void add_values(const Pass& pass, int row, int begin, int end, int channel) {
    __m256 acc[R][D];
    for (int r = 0; r < R; ++r)
        for (int d = 0; d < D; ++d)
            acc[r][d] = _mm256_loadu_ps(pass.weighted(row + r) + channel + d * 8);
    const std::byte* values = pass.block->values;
    const float* p = pass.scores_of(row);
    const int head_dim = pass.block->head_dim;
    const int width = strip_width(head_dim, channel);
    std::ptrdiff_t element = strip_at(kBlockTokens, head_dim, pass.block->first + begin, channel);
    for (int j = begin; j < end; ++j, element += width) {
        __m256 weight[R];
        for (int r = 0; r < R; ++r) weight[r] = _mm256_broadcast_ss(p + r * kBlockTokens + j);
        for (int d = 0; d < D; ++d) {
            const __m256 v = load8<Type>(values, element + d * 8);
            for (int r = 0; r < R; ++r) acc[r][d] = _mm256_fmadd_ps(weight[r], v, acc[r][d]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int d = 0; d < D; ++d)
            _mm256_storeu_ps(pass.weighted(row + r) + channel + d * 8, acc[r][d]);
}

/// The same for all channels of a strip.
template <KvType Type, int R>
void add_strip(const Pass& pass, int row, int begin, int end, int channel) {
    constexpr int kWide = R >= 4 ? 2 : 4;
    const int last = channel + strip_width(pass.block->head_dim, channel);
    for (; channel + 8 * kWide <= last; channel += 8 * kWide)
        add_values<Type, R, kWide>(pass, row, begin, end, channel);
    for (; channel < last; channel += 8) add_values<Type, R, 1>(pass, row, begin, end, channel);
}

/// What all rows of a group see is shared work; tokens that only some see are added to those alone,
/// since adding 0 * value is not always the same as adding nothing.
template <KvType Type>
void add_strip(const Pass& pass, int channel) {
    for_groups(pass.block->n_rows, [&](int row, auto rows) {
        constexpr int kRows = decltype(rows)::value;
        const int least = pass.least_visible(row, kRows);
        add_strip<Type, kRows>(pass, row, 0, least, channel);
        for (int r = row; r < row + kRows; ++r)
            if (pass.visible(r) > least)
                add_strip<Type, 1>(pass, r, least, pass.visible(r), channel);
    });
}

template <KvType Type>
void attend_rows(const AttentionBlock& block) {
    alignas(32) std::array<float, kMostAttendRows * kBlockTokens> scores;
    const Pass pass{&block, scores.data()};
    const int most = pass.most_visible(0, block.n_rows);
    const int key_strips = kBlockTokens / kStripColumns;
    const int strips = key_strips + (block.head_dim + kStripColumns - 1) / kStripColumns;
    for (int strip = 0; strip < key_strips; ++strip) {
        fetch_part(block.ahead, strip, strips);
        if (strip * kStripColumns < most) score_strip<Type>(pass, strip * kStripVectors);
    }
    for (int row = 0; row < block.n_rows; ++row) exponentials(pass, row);
    std::fill_n(block.weighted, block.n_rows * block.head_dim, 0.0F);
    for (int strip = key_strips; strip < strips; ++strip) {
        fetch_part(block.ahead, strip, strips);
        add_strip<Type>(pass, (strip - key_strips) * kStripColumns);
    }
}

}  // namespace

void attend(const AttentionBlock& block) {
    with_type(block.type, [&](auto type) { attend_rows<type.value>(block); });
}

}  // namespace skein::model::avx2

#include "model/cpu/avx2_end.h"

#endif
