#pragma once
// What a model file states about its shape, before any check, and the checks that turn it into a
// ModelConfig. GGUF keys and config.json fields are two ways to fill the same struct.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace skein::model {

/// A number with the name the file gives it, so that messages can point at the key.
struct StatedNumber {
    std::string key;
    std::optional<std::uint64_t> value;
};

/// One value for all layers, or one a layer.
struct StatedPerLayer {
    std::string key;
    std::vector<std::uint64_t> values;
};

/// Which layers are of the special kind (sparse attention, experts): those flagged, or all from a
/// first one on. Absent: none.
struct StatedKinds {
    std::string key;                    ///< what decides, for messages
    std::vector<bool> flags;            ///< one a layer
    std::optional<std::uint64_t> from;  ///< used when there are no flags
};

/// Read when some layer has sparse attention.
struct StatedMsa {
    StatedNumber index_heads;  ///< must be the number of key-value heads
    StatedNumber index_dim, block_tokens, top_k;
    StatedNumber init_blocks, local_blocks;  ///< absent means 0 and 1
};

/// Read when some layer is a mixture of experts.
struct StatedMoe {
    StatedNumber n_experts, n_used, expert_dim;
    StatedNumber shared_dim;  ///< absent or 0: no shared expert
    std::string scale_key;
    std::optional<double> scale;  ///< absent means 1
    RouterKind router = RouterKind::softmax;
    bool selection_bias = false, renormalise = false;
};

/// The largest number of layers that is believed; readers that build one flag a layer check it.
inline constexpr std::uint64_t kMaxLayers = 4096;

struct StatedConfig {
    std::string where;  ///< how messages name the file
    std::string architecture, name;
    StatedNumber n_layers, dim, max_context;
    StatedPerLayer n_heads, n_kv_heads;     ///< absent n_kv_heads means n_heads
    StatedPerLayer hidden_dim;              ///< needed when some layer has a dense MLP
    StatedNumber key_length, value_length;  ///< absent means dim / n_heads
    StatedNumber rope_dim;                  ///< absent means the head size
    StatedNumber vocab_size;                ///< absent means the number of tokens
    std::string norm_eps_key, rope_theta_key;
    std::optional<double> norm_eps;
    std::optional<double> rope_theta;           ///< absent means 10000
    std::optional<std::uint64_t> n_tokens;      ///< entries of the tokenizer in the same file
    std::optional<std::uint64_t> n_embeddings;  ///< rows of the embedding matrix
    RopeKind rope = RopeKind::interleaved;
    bool tied_head = false, qkv_bias = false;
    QkNorm qk_norm = QkNorm::none;
    ActivationKind activation = ActivationKind::silu;
    std::optional<double> activation_alpha, activation_limit;
    bool zero_centred_norms = false;
    StatedKinds sparse_attention, experts;
    StatedMsa msa;
    StatedMoe moe;
    bool dense_approximation = false;  ///< asked for by the caller: no layer is sparse
};

/// Throws: Error naming the missing key or the two values that contradict each other.
ModelConfig check_config(const StatedConfig& stated);

}  // namespace skein::model
