#pragma once
// Exact causal attention over a KV block table.
//
// The softmax is always split at the borders of the 128-token blocks: each block gives its maximum,
// sum and weighted values, and these are folded in ascending order. A prefill, a chunked prefill
// and a decode do the same operations in the same order, so they give the same bits; only who
// computes which block differs. Source: online softmax, Milakov & Gimelshein 2018; split form,
// Dao et al. 2023.

#include <vector>

#include "model/cpu/kernels.h"
#include "model/cpu/thread_pool.h"
#include "model/kv/block_table.h"

namespace skein::model {

/// Memory for partial results, kept between calls.
struct AttentionScratch {
    std::vector<float> maximum, total, weighted;
};

/// What one layer attends with.
/// Shapes: queries, out [n_tokens, n_heads, head_dim]; queries are rotated and multiplied by the
/// softmax scale. Token t has the position `start` + t and sees the positions up to its own, whose
/// keys and values are in `table` already.
struct DenseAttention {
    const BlockTable* table = nullptr;
    int layer = 0;
    int start = 0;
    int n_tokens = 0;
    int n_heads = 0;
    const float* queries = nullptr;
    float* out = nullptr;
};

void attend_dense(const DenseAttention& call, const CpuKernels& kernels, ThreadPool& pool,
                  AttentionScratch& scratch);

}  // namespace skein::model
