#pragma once
// Hyperparameters of a loaded model, read per layer, checked once at load.

#include <cstdint>
#include <string>
#include <vector>

namespace skein::model {

/// `msa`: MiniMax Sparse Attention, exact attention over the blocks that an index branch selects.
/// `retrofit`: dense attention cut down to selected blocks, see attention/retrofit.h.
enum class AttentionKind { dense, msa, retrofit };
/// `dense`: one gated MLP; `moe`: a mixture of gated MLPs.
enum class MlpKind { dense, moe };
/// Which channels a rotary pair joins: (2i, 2i+1) or (i, i + n_rot / 2).
enum class RopeKind { interleaved, half_split };

/// RMSNorm of q and k before RoPE: absent, each head with one shared vector of head_dim, or all
/// heads of a token together with a vector of n_heads * head_dim (k: n_kv_heads * head_dim).
enum class QkNorm { none, per_head, all_heads };
/// What joins gate and up. `silu`: silu(gate) * up. `swigluoai`: with gate <= limit and
/// |up| <= limit, gate * sigmoid(alpha * gate) * (up + 1).
enum class ActivationKind { silu, swigluoai };
/// How router logits become scores: softmax over all experts, or a sigmoid of each.
enum class RouterKind { softmax, sigmoid };

struct LayerConfig {
    AttentionKind attention = AttentionKind::dense;
    MlpKind mlp = MlpKind::dense;
    int n_kv_heads = 0;
    int hidden_dim = 0;  ///< width of the gate and up projections of a dense MLP
};

/// The index branch of MSA layers: one index head a KV head, one shared index key a token.
/// Source: MiniMax-M3 config.json `sparse_attention_config`; arXiv 2606.13392.
struct MsaConfig {
    int index_dim = 0;     ///< channels of index queries and keys; rope_dim of them are rotated
    int block_tokens = 0;  ///< tokens of a block, a power of two up to 128, at least 8
    int top_k = 0;         ///< blocks a query attends to, its own included
    int init_blocks = 0;   ///< first blocks that are always chosen
    int local_blocks = 1;  ///< last blocks that are always chosen, the query's own included
};

/// The mixture of experts of MoE layers. out = scale * sum of weight * expert + shared expert.
struct MoeConfig {
    int n_experts = 0;
    int n_used = 0;      ///< experts chosen for a token
    int expert_dim = 0;  ///< width of one routed expert
    int shared_dim = 0;  ///< width of the shared expert, 0: there is none
    RouterKind router = RouterKind::softmax;
    bool selection_bias = false;  ///< a bias that only takes part in choosing
    bool renormalise = false;     ///< chosen weights are divided by their sum
    float scale = 1.0F;
};

/// All extents are element counts. `layers.size()` is the number of layers.
struct ModelConfig {
    std::string architecture;  ///< GGUF `general.architecture`, e.g. "llama"
    std::string name;          ///< GGUF `general.name`, may be empty
    int dim = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;
    int rope_dim = 0;  ///< rotated channels of a head, <= head_dim, even
    int vocab_size = 0;
    int max_context = 0;  ///< positions the model was trained for
    double rope_theta = 10000.0;
    RopeKind rope = RopeKind::interleaved;
    float norm_eps = 1e-5F;
    bool tied_head = false;  ///< the output head is the embedding matrix
    bool qkv_bias = false;
    QkNorm qk_norm = QkNorm::none;
    ActivationKind activation = ActivationKind::silu;
    float activation_alpha = 1.702F;  ///< swigluoai only
    float activation_limit = 7.0F;    ///< swigluoai only
    bool zero_centred_norms = false;  ///< norms multiply by 1 + w; the file stores w
    /// Layers that the model was trained to run sparsely run dense attention because the caller
    /// asked for it: an approximation, to be named wherever results are reported.
    bool dense_approximation = false;
    MsaConfig msa;  ///< of the layers whose attention is `msa`
    MoeConfig moe;  ///< of the layers whose MLP is `moe`
    std::vector<LayerConfig> layers;
    int n_layers() const { return static_cast<int>(layers.size()); }
};

}  // namespace skein::model
