#pragma once
// The forward pass of a decoder-only transformer: from tokens to logits, for dense and sparse
// attention, dense MLPs and mixtures of experts, and for several timelines at once.
// Source: Touvron et al. 2023 (LLaMA); RoPE: Su et al. 2021; grouped queries: Ainslie et al. 2023;
// MiniMax-M3: its config.json and model code in transformers.

#include <cstdint>
#include <span>
#include <vector>

#include "model/attention/attention.h"
#include "model/choices.h"
#include "model/config.h"
#include "model/cpu/kernels.h"
#include "model/cpu/thread_pool.h"
#include "model/kv/block_table.h"
#include "model/moe.h"
#include "model/packed_weights.h"
#include "model/token.h"

namespace skein::model {

/// Some tokens of one timeline, at the positions `start`, start + 1, ...
/// Requires: start <= kv->size(), room reserved in kv. Shapes: logits [vocab_size] or empty; they
/// are those after the last token.
struct Sequence {
    std::span<const Token> tokens;
    int start = 0;
    BlockTable* kv = nullptr;
    std::span<float> logits;
    /// Receives the choices of the last token when there are logits, or of every token.
    ChoiceSink* choices = nullptr;
    bool all_choices = false;
};

/// Activations of one call; allocated once and reused by every call.
struct Workspace {
    Workspace(const ModelConfig& config, const PackedWeights& weights, int max_tokens);

    /// Where a row of activations belongs.
    struct Row {
        int sequence = 0;
        int position = 0;
    };
    int max_tokens;
    std::vector<Row> rows;
    std::vector<float> x;                       ///< residual stream [n, dim]
    RowBuffer normed;                           ///< [n, dim]
    std::vector<float> q, k, v;                 ///< [n, padded rows of wq, wk, wv]
    std::vector<float> index_q, index_k;        ///< [n, padded rows of index_wq, index_wk]
    RowBuffer attended;                         ///< [n, n_heads * head_dim]
    std::vector<float> projected;               ///< [n, padded dim]
    std::vector<float> far_cosines, far_sines;  ///< see RetrofitCall; grows with the context
    std::vector<float> cosines, sines;          ///< [n, rope_dim / 2]
    std::vector<float> logits;                  ///< [sequences, padded rows of the output head]
    std::vector<std::int32_t> selected;         ///< [n, n_kv_heads, msa.top_k]
    AttentionScratch attention;
    MlpScratch mlp;
    MoeScratch moe;
};

class Transformer {
  public:
    /// Throws: Error when the model needs something that this forward pass does not have.
    Transformer(const ModelConfig& config, const PackedWeights& weights, const CpuKernels& kernels,
                ThreadPool& pool);

    /// Evaluates all tokens of all sequences in one pass over the weights and stores the keys and
    /// values of those positions that their tables do not hold yet. Every row is computed as if it
    /// were alone, so its bits do not depend on its neighbours.
    /// Requires: at most workspace.max_tokens tokens in all, at least one each, ids in range, all
    /// tables distinct. Threads: one call at a time.
    void forward(std::span<const Sequence> sequences, Workspace& workspace) const;

    /// Computes what retrofitted layers keep of the full blocks that begin in [first, last).
    /// Requires: their keys are written, and first is not below table.size().
    void seal(BlockTable& table, int first, int last) const;

  private:
    const ModelConfig& config_;
    const PackedWeights& weights_;
    const CpuKernels& kernels_;
    ThreadPool& pool_;
    std::vector<double> frequencies_;  ///< radians per position of each rotary pair
};

}  // namespace skein::model
