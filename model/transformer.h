#pragma once
// The forward pass of a decoder-only transformer (llama, qwen2, qwen3): from tokens to logits.
// Source: Touvron et al. 2023 (LLaMA); RoPE: Su et al. 2021; grouped queries: Ainslie et al. 2023.

#include <span>
#include <vector>

#include "model/attention/dense.h"
#include "model/config.h"
#include "model/cpu/kernels.h"
#include "model/cpu/thread_pool.h"
#include "model/kv/block_table.h"
#include "model/packed_weights.h"
#include "model/token.h"

namespace skein::model {

/// Activations of one chunk of tokens; allocated once and reused by every call.
struct Workspace {
    Workspace(const ModelConfig& config, const PackedWeights& weights, int max_tokens);

    int max_tokens;
    std::vector<float> x;               ///< residual stream [n, dim]
    std::vector<float> normed;          ///< [n, dim]
    std::vector<float> q, k, v;         ///< [n, padded rows of wq, wk, wv]
    std::vector<float> attended;        ///< [n, n_heads * head_dim]
    std::vector<float> gate, up;        ///< [n, hidden_dim]; gate becomes the hidden layer
    std::vector<float> projected;       ///< [n, padded rows of wo, w_down]
    std::vector<float> cosines, sines;  ///< [n, rope_dim / 2]
    std::vector<float> logits;          ///< [padded rows of the output head]
    std::vector<std::int16_t> codes;    ///< quantised input of a projection
    std::vector<float> scales, sums;
    AttentionScratch attention;
};

class Transformer {
  public:
    /// Throws: Error when the model needs something that this forward pass does not have.
    Transformer(const ModelConfig& config, const PackedWeights& weights, const CpuKernels& kernels,
                ThreadPool& pool);

    /// Evaluates `tokens` at the positions `start`, start + 1, ... and stores the keys and values
    /// of those positions that `kv` does not hold yet. When `logits` is not empty it receives those
    /// after the last token.
    /// Requires: start <= kv.size(), room reserved in kv, at most workspace.max_tokens tokens, ids
    /// in range. Shapes: logits [vocab_size] or empty. Threads: one call at a time.
    void forward(std::span<const Token> tokens, int start, BlockTable& kv, Workspace& workspace,
                 std::span<float> logits) const;

  private:
    const ModelConfig& config_;
    const PackedWeights& weights_;
    const CpuKernels& kernels_;
    ThreadPool& pool_;
    std::vector<double> frequencies_;  ///< radians per position of each rotary pair
};

}  // namespace skein::model
