#pragma once
// How the tensors of every architecture are called in GGUF files and in safetensors folders. Some
// files hold several of our matrices as one tensor: stacked experts, gate and up in one, q k v in
// one; `FusedName` says which rows are whose.

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/load/weights.h"

namespace skein::model {

using TensorLookup = std::function<const Tensor*(std::string_view)>;

/// Names of one format: everything before the layer number, and the tensors outside the layers.
struct NamingScheme {
    std::string embedding, output_norm, output;
    std::string layers;  ///< layer i has tensors `layers` + i + "." + suffix
    bool gguf = false;

    std::string layer_tensor(std::size_t layer, std::string_view suffix) const;
};

NamingScheme gguf_names();
/// Chooses among the published layouts by the embedding matrix: text models ("model."), the
/// MiniMax-M3 release ("language_model.model.") and what transformers writes for its multimodal
/// class ("model.language_model."). The first of these when no embedding is found.
NamingScheme safetensors_names(const TensorLookup& find);

/// Other spellings of one suffix, the usual one first; empty ones are unused.
using Suffixes = std::array<std::string_view, 2>;

struct LayerTensorName {
    const Tensor* LayerWeights::*place;
    Suffixes gguf, safetensors;
};
/// Rows of the parts follow each other in one tensor.
struct FusedName {
    std::array<const Tensor * LayerWeights::*, 3> parts;  ///< unused: nullptr
    std::string_view gguf, safetensors;
};
/// All experts of one projection: one tensor an expert (`{}` is its number), or one for all.
struct ExpertName {
    std::vector<const Tensor*> LayerWeights::*place;
    Suffixes separate;         ///< safetensors
    std::string_view stacked;  ///< GGUF and transformers: see `stacked_safetensors`
    std::string_view stacked_safetensors;
};
/// Gate and up of all experts in one tensor, per expert first the gate rows.
inline constexpr std::string_view kFusedExperts[2] = {"ffn_gate_up_exps.weight",
                                                      "mlp.experts.gate_up_proj"};

std::span<const LayerTensorName> layer_tensor_names();
std::span<const FusedName> fused_names();
std::span<const ExpertName> expert_names();

/// Why a tensor of this model may be left unread without changing the results, or nothing.
/// Multi-token-prediction modules only serve speculation; this build reads text, not images.
std::optional<std::string_view> ignored_because(const ModelConfig& config, std::string_view tensor);

/// What to say when a sparse model lacks the tensor of this name from its index branch.
std::string missing_index_text(std::string_view architecture, std::string_view tensor);

}  // namespace skein::model
