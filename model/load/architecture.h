#pragma once
// The architecture table: one row says how a family is named in files, how its q and k are rotated
// and which optional tensors its layers have. Adding a family that only differs in these is one
// row.

#include <span>
#include <string_view>

#include "model/config.h"
#include "model/load/weights.h"

namespace skein::model {

struct Architecture {
    std::string_view name;           ///< GGUF `general.architecture`, also the key prefix
    std::string_view hf_model_type;  ///< `model_type` of a config.json
    /// Channel pairing of the q and k rows as GGUF converters store them; safetensors folders
    /// always hold half-split rows.
    RopeKind gguf_rope;
    bool qkv_bias;
    QkNorm qk_norm;
};

/// Names of one weight in both formats; `{}` stands for the layer number.
struct LayerTensorName {
    const Tensor* LayerWeights::*place;
    std::string_view gguf;
    std::string_view safetensors;
};

inline constexpr std::string_view kEmbeddingName[2] = {"token_embd.weight",
                                                       "model.embed_tokens.weight"};
inline constexpr std::string_view kOutputNormName[2] = {"output_norm.weight", "model.norm.weight"};
inline constexpr std::string_view kOutputName[2] = {"output.weight", "lm_head.weight"};

std::span<const Architecture> architectures();
std::span<const LayerTensorName> layer_tensor_names();

/// Throws: Error naming the unknown architecture and listing the known ones.
const Architecture& find_architecture(std::string_view name, std::string_view where);
/// The same by the `model_type` of a config.json.
const Architecture& find_model_type(std::string_view model_type, std::string_view where);

}  // namespace skein::model
