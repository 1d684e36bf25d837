#pragma once
// Binds tensor names to the places of the transformer, with every shape checked against the config.

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
    const Tensor* q_norm = nullptr;  ///< [head_dim] (qwen3)
    const Tensor* k_norm = nullptr;
    const Tensor* ffn_norm = nullptr;  ///< [dim]
    const Tensor* w_gate = nullptr;    ///< [hidden_dim, dim]
    const Tensor* w_up = nullptr;      ///< [hidden_dim, dim]
    const Tensor* w_down = nullptr;    ///< [dim, hidden_dim]
};

struct Weights {
    const Tensor* token_embedding = nullptr;  ///< [vocab_size, dim]
    const Tensor* output_norm = nullptr;      ///< [dim]
    const Tensor* output = nullptr;           ///< [vocab_size, dim]; the embedding when tied
    const Tensor* rope_freqs = nullptr;       ///< [rope_dim / 2] divisors, optional
    std::vector<LayerWeights> layers;
};

/// Looks the architecture up in the architecture table and binds its tensors.
/// Throws: Error naming the missing tensor or the tensor with the wrong shape.
/// Lifetime: the pointers live as long as `file`.
Weights bind_weights(const ModelFile& file, const ModelConfig& config);

}  // namespace skein::model
