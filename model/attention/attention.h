#pragma once
// What one layer attends with, and the case of one token that dense and sparse attention share.
//
// The softmax is always split at the borders of blocks (128 tokens, or the smaller blocks of a
// sparse layer): each block gives its maximum, sum and weighted values, and these are folded in
// ascending order. A prefill, a chunked prefill and a decode do the same operations in the same
// order, so they give the same bits; only who computes which block differs. Source: online softmax,
// Milakov & Gimelshein 2018; split form, Dao et al. 2023.

#include <cstdint>
#include <limits>
#include <vector>

#include "model/cpu/kernels.h"
#include "model/cpu/thread_pool.h"
#include "model/kv/block_table.h"

namespace skein::model {

/// When more query rows than these read a block of keys, it is widened to f32 once for all.
inline constexpr int kRowsToWiden = 8;

constexpr int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Pages of index keys that were looked at, and those of them that had to be scored: see
/// score_token.
struct BoundedPages {
    std::int64_t bounded = 0;
    std::int64_t scored = 0;
};

/// Memory for partial results, kept between calls.
struct AttentionScratch {
    std::vector<float> maximum, total, weighted;
    std::vector<std::int32_t> begins;
    std::vector<float> block_scores, block_bounds;
    BoundedPages filter;
};

/// Shapes: queries, out [n_tokens, n_heads, head_dim]; queries are rotated and multiplied by the
/// softmax scale. Token t has the position `start` + t and sees positions up to its own, whose keys
/// and values are in `table` already.
struct AttentionCall {
    const BlockTable* table = nullptr;
    int layer = 0;
    int start = 0;
    int n_tokens = 0;
    int n_heads = 0;
    const float* queries = nullptr;
    float* out = nullptr;

    int head_dim() const { return table->layout().head_dim(); }
    int n_kv_heads() const { return table->layout().n_kv_heads(layer); }
    /// Query heads that share a KV head.
    int group() const { return n_heads / n_kv_heads(); }
    std::ptrdiff_t token_stride() const {
        return static_cast<std::ptrdiff_t>(n_heads) * head_dim();
    }
};

/// The keys and values from position `begin` to the end of its page.
AttentionBlock block_view(const AttentionCall& call, int kv_head, int begin);

/// Makes `block` f32 with the copies in `keys` and `values` [head_dim, 128]: worth it when many
/// rows read it. Requires: the block begins a page.
void widen_block(const CpuKernels& kernels, AttentionBlock& block, float* keys, float* values);

/// The first positions of the blocks that one token attends to, ascending.
/// Shapes: begins [1 or n_kv_heads, count]: one list for all KV heads, or one each.
struct BlockLists {
    const std::int32_t* begins = nullptr;
    int count = 0;
    bool per_head = false;
    int block_tokens = kBlockTokens;
};

/// Attention of one token. Requires: call.n_tokens is 1.
void attend_token(const AttentionCall& call, const BlockLists& lists, const CpuKernels& kernels,
                  ThreadPool& pool, AttentionScratch& scratch);

}  // namespace skein::model
