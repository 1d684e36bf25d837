#pragma once
// Hyperparameters of a loaded model, read per layer, checked once at load.

#include <cstdint>
#include <string>
#include <vector>

namespace skein::model {

enum class AttentionKind { dense, msa };
enum class MlpKind { swiglu, moe };
/// Which channels a rotary pair joins: (2i, 2i+1) or (i, i + n_rot / 2).
enum class RopeKind { interleaved, half_split };

struct LayerConfig {
    AttentionKind attention = AttentionKind::dense;
    MlpKind mlp = MlpKind::swiglu;
    int n_kv_heads = 0;
    int hidden_dim = 0;  ///< width of the gate and up projections
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
    bool qk_norm = false;  ///< per-head RMSNorm of q and k before RoPE
    std::vector<LayerConfig> layers;
    int n_layers() const { return static_cast<int>(layers.size()); }
};

}  // namespace skein::model
