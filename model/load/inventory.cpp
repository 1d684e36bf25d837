#include "model/load/inventory.h"

#include <algorithm>

#include "model/load/mxfp8.h"

namespace skein::model {
namespace {

using L = LayerWeights;

/// Which part a place of a layer belongs to. Expert matrices are counted on their own.
struct PlacePart {
    const Tensor* L::*place;
    std::string_view part;
};
constexpr PlacePart kParts[] = {
    {&L::attn_norm, "norms"},
    {&L::wq, "attention"},
    {&L::wk, "attention"},
    {&L::wv, "attention"},
    {&L::wo, "attention"},
    {&L::bq, "attention"},
    {&L::bk, "attention"},
    {&L::bv, "attention"},
    {&L::q_norm, "norms"},
    {&L::k_norm, "norms"},
    {&L::index_wq, "index branch"},
    {&L::index_wk, "index branch"},
    {&L::index_q_norm, "norms"},
    {&L::index_k_norm, "norms"},
    {&L::ffn_norm, "norms"},
    {&L::w_gate, "dense MLP"},
    {&L::w_up, "dense MLP"},
    {&L::w_down, "dense MLP"},
    {&L::router, "router"},
    {&L::router_bias, "router"},
    {&L::shared_gate, "shared expert"},
    {&L::shared_up, "shared expert"},
    {&L::shared_down, "shared expert"},
};

class Counter {
  public:
    Inventory count(const ModelConfig& config, const Weights& weights) {
        add("embedding", weights.token_embedding);
        for (const LayerWeights& layer : weights.layers) {
            for (const PlacePart& row : kParts) add(row.part, layer.*row.place);
            for (const auto place : {&L::expert_gate, &L::expert_up, &L::expert_down}) {
                for (const Tensor* expert : layer.*place) add("experts", expert);
            }
        }
        add("norms", weights.output_norm);
        if (weights.output != weights.token_embedding) add("output head", weights.output);
        finish(config);
        return std::move(inventory_);
    }

  private:
    void add(std::string_view part, const Tensor* tensor) {
        if (tensor == nullptr) return;
        auto& parts = inventory_.parts;
        auto at = std::find_if(parts.begin(), parts.end(),
                               [&](const PartSize& p) { return p.name == part; });
        if (at == parts.end()) at = parts.insert(parts.end(), PartSize{part, 0, 0, {}});
        const auto n = static_cast<std::uint64_t>(tensor->n_rows() * tensor->row_length());
        at->parameters += n;
        at->bytes += tensor->bytes;
        at->bytes_by_type[dtype_info(tensor->type).name] += tensor->bytes;
        if (tensor->type == DType::f8_e4m3) {
            inventory_.scale_bytes += n / static_cast<std::uint64_t>(kMxBlock);
        }
    }

    void finish(const ModelConfig& config) {
        std::uint64_t unused = 0;
        for (const PartSize& part : inventory_.parts) {
            inventory_.parameters += part.parameters;
            inventory_.bytes += part.bytes;
            if (part.name != "experts") continue;
            const auto experts = static_cast<std::uint64_t>(config.moe.n_experts);
            const auto used = static_cast<std::uint64_t>(config.moe.n_used);
            unused = part.parameters / experts * (experts - used);
        }
        inventory_.active_parameters = inventory_.parameters - unused;
    }

    Inventory inventory_;
};

}  // namespace

Inventory take_inventory(const ModelConfig& config, const Weights& weights) {
    return Counter().count(config, weights);
}

}  // namespace skein::model
