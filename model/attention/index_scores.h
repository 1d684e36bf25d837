#pragma once
// Scores of the index branch: which blocks the queries of a layer find, before any is selected.

#include <cstdint>
#include <span>
#include <vector>

#include "model/attention/attention.h"
#include "model/attention/msa.h"

namespace skein::model {

/// The stored index keys of one page.
IndexBlock index_view(const AttentionCall& call, int block_tokens, int page);

/// Memory for the index keys of one page in the form that score_blocks reads.
struct IndexKeys {
    std::vector<float> widened;
    std::vector<std::int16_t> joined;
};
/// Makes the stored keys of `block` readable for score_blocks: codes are joined, other types are
/// widened when many rows read them. `keys` must live as long as `block` is used.
void read_index_keys(const CpuKernels& kernels, IndexBlock& block, IndexKeys& keys);

/// The codes of index queries, when index keys are codes too. Shapes: queries [n_rows, dim].
void encode_queries(const KvLayout& layout, const CpuKernels& kernels, const float* queries,
                    int n_rows, std::vector<std::int16_t>& codes);

/// Whether score_token bounds so many pages before it scores some of them.
bool bounds_pages(const KvLayout& layout, const MsaConfig& msa, int pages);

/// Scores all blocks for the KV heads of one token, in scratch.block_scores
/// [n_kv_heads, pages * blocks a page]. Where bounds_pages says so, the high bytes of the keys
/// bound every block's score first; only blocks whose bound reaches the scores of the best ones are
/// scored, the others get minus infinity: select_blocks chooses the same.
/// Shapes: evicted [blocks] or empty. Requires: call.n_tokens is 1.
void score_token(const AttentionCall& call, const IndexCall& index, const CpuKernels& kernels,
                 ThreadPool& pool, std::span<const std::uint8_t> evicted,
                 AttentionScratch& scratch);

}  // namespace skein::model
