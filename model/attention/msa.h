#pragma once
// MiniMax Sparse Attention: an index branch scores all earlier blocks for each KV head, the best
// few are selected, and the query heads of that KV head attend exactly to those. Unselected blocks
// are never read. Source: arXiv 2606.13392; MiniMax-M3 model code in transformers and vLLM.

#include <cstdint>

#include "model/attention/attention.h"
#include "model/config.h"

namespace skein::model {

/// The index branch of one layer.
/// Shapes: queries [n_tokens, index_stride], of which the first n_kv_heads * index_dim are index
/// queries, normed and rotated; selected [n_tokens, n_kv_heads, msa.top_k].
struct IndexCall {
    const MsaConfig* msa = nullptr;
    const float* queries = nullptr;
    std::ptrdiff_t stride = 0;
    std::int32_t* selected = nullptr;  ///< receives the chosen blocks, ascending, then -1
};

/// Selects the blocks of every token and attends to them. The index keys up to each token's own
/// are in the table already.
void attend_msa(const AttentionCall& call, const IndexCall& index, const CpuKernels& kernels,
                ThreadPool& pool, AttentionScratch& scratch);

}  // namespace skein::model
