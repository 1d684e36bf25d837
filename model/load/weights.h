#pragma once
// Binds tensor names to the places of the transformer, with every shape checked against the config.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/load/model_file.h"

namespace skein::model {

/// Shapes are written [rows, row length]. A null pointer means the architecture has no such tensor.
struct LayerWeights {
    const Tensor* attn_norm = nullptr;  ///< [dim]
    const Tensor* wq = nullptr;         ///< [n_heads * head_dim, dim]
    const Tensor* wk = nullptr;         ///< [n_kv_heads * head_dim, dim]
    const Tensor* wv = nullptr;         ///< [n_kv_heads * head_dim, dim]
    const Tensor* wo = nullptr;         ///< [dim, n_heads * head_dim]
    const Tensor* bq = nullptr;         ///< [n_heads * head_dim] (qwen2)
    const Tensor* bk = nullptr;
    const Tensor* bv = nullptr;
    const Tensor* q_norm = nullptr;  ///< [head_dim] (qwen3, minimax-m3) or [n_heads * head_dim]
    const Tensor* k_norm = nullptr;  ///< [head_dim] or [n_kv_heads * head_dim] (minimax-m2)
    // MSA layers.
    const Tensor* index_wq = nullptr;      ///< [n_kv_heads * index_dim, dim]
    const Tensor* index_wk = nullptr;      ///< [index_dim, dim]
    const Tensor* index_q_norm = nullptr;  ///< [index_dim]
    const Tensor* index_k_norm = nullptr;  ///< [index_dim]
    const Tensor* ffn_norm = nullptr;      ///< [dim]
    // Dense MLP.
    const Tensor* w_gate = nullptr;  ///< [hidden_dim, dim]
    const Tensor* w_up = nullptr;    ///< [hidden_dim, dim]
    const Tensor* w_down = nullptr;  ///< [dim, hidden_dim]
    // Mixture of experts.
    const Tensor* router = nullptr;       ///< [n_experts, dim]
    const Tensor* router_bias = nullptr;  ///< [n_experts], when MoeConfig::selection_bias
    std::vector<const Tensor*> expert_gate, expert_up;  ///< [n_experts] of [expert_dim, dim]
    std::vector<const Tensor*> expert_down;             ///< [n_experts] of [dim, expert_dim]
    const Tensor* shared_gate = nullptr;                ///< [shared_dim, dim]
    const Tensor* shared_up = nullptr;                  ///< [shared_dim, dim]
    const Tensor* shared_down = nullptr;                ///< [dim, shared_dim]
};

struct Weights {
    const Tensor* token_embedding = nullptr;  ///< [vocab_size, dim]
    const Tensor* output_norm = nullptr;      ///< [dim]
    const Tensor* output = nullptr;           ///< [vocab_size, dim]; the embedding when tied
    const Tensor* rope_freqs = nullptr;       ///< [rope_dim / 2] divisors, optional
    std::vector<LayerWeights> layers;
    /// Tensors that the file holds as part of another one (stacked experts, a fused gate and up)
    /// or that had to be converted (MXFP8); the pointers above may point here.
    std::deque<Tensor> derived;
    std::vector<std::unique_ptr<std::byte[]>> converted;  ///< memory of converted tensors
    /// What was left unread and why, and what else a report about this model should say.
    std::vector<std::string> notes;
};

struct BindOptions {
    /// False: 8-bit tensors keep their stored type and nothing is allocated, which is enough to
    /// describe a file but not to evaluate it.
    bool convert = true;
};

/// Looks the architecture up in the architecture table and binds its tensors.
/// Throws: Error naming the missing tensor or the tensor with the wrong shape.
/// Lifetime: the pointers live as long as `file` and the result, which may be moved but not copied.
Weights bind_weights(const ModelFile& file, const ModelConfig& config,
                     const BindOptions& options = {});

}  // namespace skein::model
