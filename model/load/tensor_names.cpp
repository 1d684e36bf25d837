#include "model/load/tensor_names.h"

#include <fmt/format.h>

namespace skein::model {
namespace {

using L = LayerWeights;

// The second GGUF spellings of the index branch are those of files converted before the names were
// settled (llama.cpp pull request 24908, June 2026).
constexpr LayerTensorName kLayerTensors[] = {
    {&L::attn_norm, {"attn_norm.weight"}, {"input_layernorm.weight"}},
    {&L::wq, {"attn_q.weight"}, {"self_attn.q_proj.weight"}},
    {&L::wk, {"attn_k.weight"}, {"self_attn.k_proj.weight"}},
    {&L::wv, {"attn_v.weight"}, {"self_attn.v_proj.weight"}},
    {&L::wo, {"attn_output.weight"}, {"self_attn.o_proj.weight"}},
    {&L::bq, {"attn_q.bias"}, {"self_attn.q_proj.bias"}},
    {&L::bk, {"attn_k.bias"}, {"self_attn.k_proj.bias"}},
    {&L::bv, {"attn_v.bias"}, {"self_attn.v_proj.bias"}},
    {&L::q_norm, {"attn_q_norm.weight"}, {"self_attn.q_norm.weight"}},
    {&L::k_norm, {"attn_k_norm.weight"}, {"self_attn.k_norm.weight"}},
    {&L::index_wq,
     {"indexer.q_proj.weight", "index_q_proj.weight"},
     {"self_attn.index_q_proj.weight", "self_attn.indexer.q_proj.weight"}},
    {&L::index_wk,
     {"indexer.k_proj.weight", "index_k_proj.weight"},
     {"self_attn.index_k_proj.weight", "self_attn.indexer.k_proj.weight"}},
    {&L::index_q_norm,
     {"indexer.q_norm.weight", "index_q_norm.weight"},
     {"self_attn.index_q_norm.weight", "self_attn.indexer.q_norm.weight"}},
    {&L::index_k_norm,
     {"indexer.k_norm.weight", "index_k_norm.weight"},
     {"self_attn.index_k_norm.weight", "self_attn.indexer.k_norm.weight"}},
    {&L::ffn_norm, {"ffn_norm.weight"}, {"post_attention_layernorm.weight"}},
    {&L::w_gate, {"ffn_gate.weight"}, {"mlp.gate_proj.weight"}},
    {&L::w_up, {"ffn_up.weight"}, {"mlp.up_proj.weight"}},
    {&L::w_down, {"ffn_down.weight"}, {"mlp.down_proj.weight"}},
    {&L::router, {"ffn_gate_inp.weight"}, {"block_sparse_moe.gate.weight", "mlp.gate.weight"}},
    {&L::router_bias,
     {"exp_probs_b.bias"},
     {"block_sparse_moe.e_score_correction_bias", "mlp.gate.e_score_correction_bias"}},
    {&L::shared_gate,
     {"ffn_gate_shexp.weight"},
     {"block_sparse_moe.shared_experts.gate_proj.weight", "mlp.shared_experts.gate_proj.weight"}},
    {&L::shared_up,
     {"ffn_up_shexp.weight"},
     {"block_sparse_moe.shared_experts.up_proj.weight", "mlp.shared_experts.up_proj.weight"}},
    {&L::shared_down,
     {"ffn_down_shexp.weight"},
     {"block_sparse_moe.shared_experts.down_proj.weight", "mlp.shared_experts.down_proj.weight"}},
};

constexpr FusedName kFused[] = {
    {{&L::wq, &L::wk, &L::wv}, "attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {{&L::w_gate, &L::w_up, nullptr}, "", "mlp.gate_up_proj.weight"},
    {{&L::shared_gate, &L::shared_up, nullptr}, "", "mlp.shared_experts.gate_up_proj.weight"},
};

constexpr ExpertName kExperts[] = {
    {&L::expert_gate,
     {"block_sparse_moe.experts.{}.w1.weight", "mlp.experts.{}.gate_proj.weight"},
     "ffn_gate_exps.weight",
     ""},
    {&L::expert_up,
     {"block_sparse_moe.experts.{}.w3.weight", "mlp.experts.{}.up_proj.weight"},
     "ffn_up_exps.weight",
     ""},
    {&L::expert_down,
     {"block_sparse_moe.experts.{}.w2.weight", "mlp.experts.{}.down_proj.weight"},
     "ffn_down_exps.weight",
     "mlp.experts.down_proj"},
};

struct Root {
    std::string_view prefix, head;
};
constexpr Root kRoots[] = {{"model.", "lm_head.weight"},
                           {"language_model.model.", "language_model.lm_head.weight"},
                           {"model.language_model.", "lm_head.weight"}};

}  // namespace

std::string NamingScheme::layer_tensor(std::size_t layer, std::string_view suffix) const {
    return fmt::format("{}{}.{}", layers, layer, suffix);
}

NamingScheme gguf_names() {
    return {"token_embd.weight", "output_norm.weight", "output.weight", "blk.", true};
}

NamingScheme safetensors_names(const TensorLookup& find) {
    const auto names = [](const Root& root) {
        const std::string prefix(root.prefix);
        return NamingScheme{prefix + "embed_tokens.weight", prefix + "norm.weight",
                            std::string(root.head), prefix + "layers.", false};
    };
    for (const Root& root : kRoots) {
        NamingScheme scheme = names(root);
        if (find(scheme.embedding) != nullptr) return scheme;
    }
    return names(kRoots[0]);
}

std::span<const LayerTensorName> layer_tensor_names() {
    return kLayerTensors;
}

std::span<const FusedName> fused_names() {
    return kFused;
}

std::span<const ExpertName> expert_names() {
    return kExperts;
}

std::optional<std::string_view> ignored_because(const ModelConfig& config,
                                                std::string_view tensor) {
    const auto has = [&](std::string_view part) {
        return tensor.find(part) != std::string_view::npos;
    };
    // Old checkpoints store the rotary frequencies, which follow from the config.
    if (tensor.ends_with(".rotary_emb.inv_freq"))
        return "rotary frequencies follow from the config";
    if (config.dense_approximation && (has(".indexer.") || has(".index_q_") || has(".index_k_"))) {
        return "dense attention was asked for in place of the index branch";
    }
    const bool m3 = config.architecture == "minimax-m3";
    if ((m3 || config.architecture == "minimax-m2") &&
        (tensor.starts_with("mtp.") || has(".mtp."))) {
        return "multi-token-prediction modules are not used";
    }
    if (!m3) return std::nullopt;
    if (tensor.starts_with("model.")) tensor.remove_prefix(6);
    for (const std::string_view part :
         {"vision_tower.", "multi_modal_projector.", "patch_merge_mlp."}) {
        if (tensor.starts_with(part)) return "images are not read, only text";
    }
    return std::nullopt;
}

std::string missing_index_text(std::string_view architecture, std::string_view tensor) {
    return fmt::format(
        "architecture '{}' needs tensor '{}' of the index branch of its sparse attention, the file "
        "does not have it; such files were converted for dense attention only, which is not what "
        "the model was trained with. Convert the model again with a converter that keeps the index "
        "tensors, or ask for the dense approximation",
        architecture, tensor);
}

}  // namespace skein::model
