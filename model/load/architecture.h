#pragma once
// The architecture table: one row says how a family is named in files, how its q and k are rotated
// and which optional parts its layers have. Adding a family that only differs in these is one row.

#include <array>
#include <span>
#include <string_view>

#include "model/config.h"

namespace skein::model {

struct Architecture {
    std::string_view name;  ///< GGUF `general.architecture`, also the key prefix
    /// Values of `model_type` in a config.json; unused ones are empty.
    std::array<std::string_view, 2> hf_model_types;
    /// Channel pairing of the q and k rows as GGUF converters store them; safetensors folders
    /// always hold half-split rows.
    RopeKind gguf_rope = RopeKind::half_split;
    bool qkv_bias = false;
    QkNorm qk_norm = QkNorm::none;
    ActivationKind activation = ActivationKind::silu;
    bool sparse_attention = false;  ///< some layers have an index branch
    bool experts = false;           ///< some layers are mixtures of experts
    RouterKind router = RouterKind::softmax;
    bool selection_bias = false;
    bool zero_centred_norms = false;  ///< in safetensors; GGUF converters add the 1
};

std::span<const Architecture> architectures();

/// Throws: Error naming the unknown architecture and listing the known ones.
const Architecture& find_architecture(std::string_view name, std::string_view where);
/// The same by the `model_type` of a config.json.
const Architecture& find_model_type(std::string_view model_type, std::string_view where);

}  // namespace skein::model
