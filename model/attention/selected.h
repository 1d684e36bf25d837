#pragma once
// Exact attention over the blocks that were selected for each token and KV head. Many tokens: a
// block is loaded once for all of a tile's tokens that chose it, blocks ascending; unselected
// blocks are never read.

#include <cstdint>

#include "model/attention/attention.h"

namespace skein::model {

/// Queries that see some blocks from elsewhere than where they stand (see retrofit.h).
struct FarQueries {
    virtual ~FarQueries() = default;
    /// Whether the token at `position` sees the block that begins at `begin` from afar.
    virtual bool is_far(int position, int begin) const = 0;
    /// The query of one token and head for that block. Shapes: out [head_dim].
    virtual void turn(const CpuKernels& kernels, int token, int head, int begin,
                      float* out) const = 0;
};

/// Shapes: lists [n_tokens, n_kv_heads, top_k], each ascending, then -1.
struct SelectedBlocks {
    const std::int32_t* lists = nullptr;
    int top_k = 0;
    int block_tokens = kBlockTokens;
    const FarQueries* far = nullptr;
};

void attend_selected(const AttentionCall& call, const SelectedBlocks& blocks,
                     const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch);

}  // namespace skein::model
