// One block of 128 keys and values for a tile of query rows. Keys are transposed, so a vector holds
// the same channel of 8 tokens and no score needs a sum across lanes; the rows of a tile (the query
// heads that share a KV head) reuse every loaded key and value.

#include "model/cpu/attention_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <limits>

#include "model/cpu/math.h"

#include "model/cpu/avx2_begin.h"

#include "model/cpu/avx2.h"

namespace skein::model::avx2 {
namespace {

/// The rows of one tile: at most 4, so that their accumulators stay in registers.
struct Tile {
    const AttentionBlock* block;
    int first_row;
    float* scores;  ///< [R, 128], then the exponentials
    Prefetcher* ahead;
    const float* query(int r) const {
        return block->queries + static_cast<std::ptrdiff_t>(first_row + r) * block->head_dim;
    }
    float* weighted(int r) const {
        return block->weighted + static_cast<std::ptrdiff_t>(first_row + r) * block->head_dim;
    }
    int visible(int r) const { return block->visible[first_row + r]; }
};

/// Scores of R rows against V vectors of 8 tokens.
template <KvType Type, int R, int V>
void score_vectors(const Tile& tile, int first_vector) {
    __m256 acc[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) acc[r][v] = _mm256_setzero_ps();
    const std::byte* keys = tile.block->keys;
    const int head_dim = tile.block->head_dim;
    std::ptrdiff_t element = static_cast<std::ptrdiff_t>(first_vector) * 8;
    Prefetcher ahead = *tile.ahead;
    for (int d = 0; d < head_dim; ++d, element += kBlockTokens) {
        ahead.step();
        __m256 q[R];
        for (int r = 0; r < R; ++r) q[r] = _mm256_broadcast_ss(tile.query(r) + d);
        for (int v = 0; v < V; ++v) {
            const __m256 k = load8<Type>(keys, element + v * 8);
            for (int r = 0; r < R; ++r) acc[r][v] = _mm256_fmadd_ps(q[r], k, acc[r][v]);
        }
    }
    *tile.ahead = ahead;
    if (tile.block->key_scales != nullptr)
        for (int v = 0; v < V; ++v) {
            const __m256 scale = _mm256_loadu_ps(tile.block->key_scales + (first_vector + v) * 8);
            for (int r = 0; r < R; ++r) acc[r][v] = _mm256_mul_ps(acc[r][v], scale);
        }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v)
            _mm256_storeu_ps(tile.scores + r * kBlockTokens + (first_vector + v) * 8, acc[r][v]);
}

/// Replaces the scores of a row by exp(score - maximum), times the scales of the values; those it
/// may not see become 0.
void exponentials(const Tile& tile, int r) {
    float* row = tile.scores + r * kBlockTokens;
    const int visible = tile.visible(r);
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
    const float* scales = tile.block->value_scales;
    __m256 total = _mm256_setzero_ps();
    for (int v = 0; v < vectors; ++v) {
        __m256 p = exp8(_mm256_sub_ps(_mm256_loadu_ps(row + v * 8), shift));
        total = _mm256_add_ps(total, p);
        if (scales != nullptr) p = _mm256_mul_ps(p, _mm256_loadu_ps(scales + v * 8));
        _mm256_storeu_ps(row + v * 8, p);
    }
    tile.block->maximum[tile.first_row + r] = maximum;
    tile.block->total[tile.first_row + r] = sum_of_lanes(total);
}

/// Adds the tokens [begin, end), weighted, to 8 * D channels of R rows.
template <KvType Type, int R, int D>
void add_values(const Tile& tile, int first_row, int begin, int end, int channel) {
    __m256 acc[R][D];
    for (int r = 0; r < R; ++r)
        for (int d = 0; d < D; ++d)
            acc[r][d] = _mm256_loadu_ps(tile.weighted(first_row + r) + channel + d * 8);
    const std::byte* values = tile.block->values;
    const float* p = tile.scores + first_row * kBlockTokens;
    const int head_dim = tile.block->head_dim;
    std::ptrdiff_t element = static_cast<std::ptrdiff_t>(begin) * head_dim + channel;
    Prefetcher ahead = *tile.ahead;
    for (int j = begin; j < end; ++j, element += head_dim) {
        ahead.step();
        __m256 weight[R];
        for (int r = 0; r < R; ++r) weight[r] = _mm256_broadcast_ss(p + r * kBlockTokens + j);
        for (int d = 0; d < D; ++d) {
            const __m256 v = load8<Type>(values, element + d * 8);
            for (int r = 0; r < R; ++r) acc[r][d] = _mm256_fmadd_ps(weight[r], v, acc[r][d]);
        }
    }
    *tile.ahead = ahead;
    for (int r = 0; r < R; ++r)
        for (int d = 0; d < D; ++d)
            _mm256_storeu_ps(tile.weighted(first_row + r) + channel + d * 8, acc[r][d]);
}

template <KvType Type, int R>
void add_values(const Tile& tile, int first_row, int begin, int end) {
    constexpr int kWide = R >= 4 ? 2 : 4;
    const int head_dim = tile.block->head_dim;
    int channel = 0;
    for (; channel + 8 * kWide <= head_dim; channel += 8 * kWide)
        add_values<Type, R, kWide>(tile, first_row, begin, end, channel);
    for (; channel < head_dim; channel += 8)
        add_values<Type, R, 1>(tile, first_row, begin, end, channel);
}

template <KvType Type, int R>
void attend_tile(const AttentionBlock& block, int first_row, Prefetcher& ahead) {
    alignas(32) std::array<float, R * kBlockTokens> scores;
    const Tile tile{&block, first_row, scores.data(), &ahead};
    int least = tile.visible(0);
    int most = least;
    for (int r = 1; r < R; ++r) {
        least = std::min(least, tile.visible(r));
        most = std::max(most, tile.visible(r));
    }
    constexpr int kWide = R >= 4 ? 2 : 4;
    const int vectors = (most + 7) / 8;
    int v = 0;
    for (; v + kWide <= vectors; v += kWide) score_vectors<Type, R, kWide>(tile, v);
    for (; v < vectors; ++v) score_vectors<Type, R, 1>(tile, v);
    for (int r = 0; r < R; ++r) {
        exponentials(tile, r);
        std::fill_n(tile.weighted(r), block.head_dim, 0.0F);
    }
    // What all rows see is shared work; tokens that only some see are added to those alone, since
    // adding 0 * value is not always the same as adding nothing.
    add_values<Type, R>(tile, 0, 0, least);
    for (int r = 0; r < R; ++r)
        if (tile.visible(r) > least) add_values<Type, 1>(tile, r, least, tile.visible(r));
}

template <KvType Type>
void attend_rows(const AttentionBlock& block) {
    Prefetcher ahead(block.ahead, block.keys);
    int row = 0;
    // Three rows keep 12 sums in flight, enough to hide the latency of a multiply-add.
    for (; row + 3 <= block.n_rows && block.n_rows - row != 4; row += 3)
        attend_tile<Type, 3>(block, row, ahead);
    switch (block.n_rows - row) {
        case 4:
            attend_tile<Type, 4>(block, row, ahead);
            break;
        case 2:
            attend_tile<Type, 2>(block, row, ahead);
            break;
        case 1:
            attend_tile<Type, 1>(block, row, ahead);
            break;
        default:
            break;
    }
}

}  // namespace

void attend(const AttentionBlock& block) {
    with_type(block.type, [&](auto type) { attend_rows<type.value>(block); });
}

}  // namespace skein::model::avx2

#include "model/cpu/avx2_end.h"

#endif
