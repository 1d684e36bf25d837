#pragma once
// Block selection for models that were trained with dense attention: an approximation by which
// they run far beyond their trained length at bounded cost.
//
// A full block of 128 tokens keeps, for each KV head, the smallest and largest value of every
// channel of its keys, turned back by the block's first position. A query, turned to a fixed
// distance behind every block, gives an upper bound of its scores there (Quest, Tang et al. 2024);
// the best blocks are selected, the first and the last few always. Selected blocks before the last
// few are attended to as if they lay at that fixed distance (InfLLM, Xiao et al. 2024), so that no
// distance exceeds what the model has seen. While at most top_k blocks exist, everything is
// attended to where it is: the same bits as dense attention.

#include <cstdint>

#include "model/attention/attention.h"
#include "model/config.h"

namespace skein::model {

/// What the attention of one retrofitted layer needs besides AttentionCall.
/// Shapes: queries [n_tokens, n_heads, head_dim], scaled but not rotated; far_cosines, far_sines
/// [blocks + 1, rope_dim / 2]: angles of the fixed distance itself (row 0), then of the position
/// that lies this distance behind the beginning of each block.
struct RetrofitCall {
    const MsaConfig* msa = nullptr;
    RopeKind rope = RopeKind::half_split;
    int rope_dim = 0;
    const float* queries = nullptr;
    const float* far_cosines = nullptr;
    const float* far_sines = nullptr;
    std::int32_t* selected = nullptr;  ///< [n_tokens, n_kv_heads, top_k], as IndexCall::selected
};

/// Tokens between a block's beginning and where far queries stand.
int far_distance(const MsaConfig& msa);

/// Computes the bounds of a full block of one layer from its stored keys.
/// Shapes: cosines, sines [rope_dim / 2]: angles of the block's first position.
void seal_block(const KvLayout& layout, const CpuKernels& kernels, std::byte* block, int layer,
                RopeKind rope, int rope_dim, const float* cosines, const float* sines);

void attend_retrofit(const AttentionCall& call, const RetrofitCall& retrofit,
                     const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch);

}  // namespace skein::model
