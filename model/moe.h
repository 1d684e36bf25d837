#pragma once
// A mixture of experts: a router chooses a few experts for each token, their outputs are weighted
// and added; a shared expert sees every token. Tokens are grouped by expert, so that a chunk reads
// each expert's weights once. Source: Shazeer et al. 2017; sigmoid scores with a selection bias:
// DeepSeek-V3, arXiv 2412.19437.

#include <cstdint>
#include <span>
#include <vector>

#include "model/mlp.h"

namespace skein::model {

/// The experts of one token, in the order of choice: highest score (with bias) first, equal scores
/// by the lower id, NaN last. Weights are the scores without bias, divided by their sum when the
/// config says so, times its scale.
/// Shapes: logits [n_experts]; bias [n_experts] or empty; experts, weights [n_used].
void route(const MoeConfig& moe, std::span<const float> logits, std::span<const float> bias,
           std::span<std::int32_t> experts, std::span<float> weights);

struct MoeScratch {
    std::vector<float> logits;          ///< [n, padded rows of the router]
    std::vector<std::int32_t> experts;  ///< [n, n_used]
    std::vector<float> weights;         ///< [n, n_used]
    std::vector<int> row_of;            ///< [n, n_used]: where a (token, choice) lies below
    RowBuffer gathered;                 ///< inputs ordered by expert
    std::vector<float> outputs;         ///< [n * n_used, padded dim], ordered by expert
    MlpScratch mlp;
};

/// x += shared(input) + sum of weight * expert(input), experts added in the order of choice.
/// Shapes: input [n, dim], with codes when a reading matrix is quantised; x [n, dim].
/// `experts` of the scratch holds the choices afterwards.
void add_experts(const ModelConfig& config, const PackedLayer& layer, const Cpu& cpu,
                 const Activations& input, int n, MoeScratch& scratch, MlpScratch& shared_scratch,
                 float* projected, float* x);

}  // namespace skein::model
