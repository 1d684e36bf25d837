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

struct StatedConfig {
    std::string where;  ///< how messages name the file
    std::string architecture, name;
    StatedNumber n_layers, dim, max_context;
    StatedPerLayer n_heads, n_kv_heads, hidden_dim;  ///< absent n_kv_heads means n_heads
    StatedNumber key_length, value_length;           ///< absent means dim / n_heads
    StatedNumber rope_dim;                           ///< absent means the head size
    StatedNumber vocab_size;                         ///< absent means the number of tokens
    std::string norm_eps_key, rope_theta_key;
    std::optional<double> norm_eps;
    std::optional<double> rope_theta;           ///< absent means 10000
    std::optional<std::uint64_t> n_tokens;      ///< entries of the tokenizer in the same file
    std::optional<std::uint64_t> n_embeddings;  ///< rows of the embedding matrix
    RopeKind rope = RopeKind::interleaved;
    bool tied_head = false, qkv_bias = false;
    QkNorm qk_norm = QkNorm::none;
};

/// Throws: Error naming the missing key or the two values that contradict each other.
ModelConfig check_config(const StatedConfig& stated);

}  // namespace skein::model
