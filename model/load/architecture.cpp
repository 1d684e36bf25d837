#include "model/load/architecture.h"

#include <fmt/format.h>

#include <string>

#include "model/error.h"

namespace skein::model {
namespace {

// The llama converter permutes q and k rows, so that its GGUF files join channels (2i, 2i + 1).
constexpr Architecture kArchitectures[] = {
    {.name = "llama",
     .hf_model_type = "llama",
     .gguf_rope = RopeKind::interleaved,
     .qkv_bias = false,
     .qk_norm = QkNorm::none},
    {.name = "qwen2",
     .hf_model_type = "qwen2",
     .gguf_rope = RopeKind::half_split,
     .qkv_bias = true,
     .qk_norm = QkNorm::none},
    {.name = "qwen3",
     .hf_model_type = "qwen3",
     .gguf_rope = RopeKind::half_split,
     .qkv_bias = false,
     .qk_norm = QkNorm::per_head},
};

using L = LayerWeights;
constexpr LayerTensorName kLayerTensors[] = {
    {&L::attn_norm, "blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight"},
    {&L::wq, "blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight"},
    {&L::wk, "blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight"},
    {&L::wv, "blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight"},
    {&L::wo, "blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight"},
    {&L::bq, "blk.{}.attn_q.bias", "model.layers.{}.self_attn.q_proj.bias"},
    {&L::bk, "blk.{}.attn_k.bias", "model.layers.{}.self_attn.k_proj.bias"},
    {&L::bv, "blk.{}.attn_v.bias", "model.layers.{}.self_attn.v_proj.bias"},
    {&L::q_norm, "blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
    {&L::k_norm, "blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"},
    {&L::ffn_norm, "blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {&L::w_gate, "blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight"},
    {&L::w_up, "blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight"},
    {&L::w_down, "blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight"},
};

const Architecture& find(std::string_view wanted, std::string_view Architecture::*field,
                         std::string_view where) {
    std::string known;
    for (const Architecture& row : kArchitectures) {
        if (row.*field == wanted) return row;
        known += (known.empty() ? "" : ", ") + std::string(row.*field);
    }
    throw Error(fmt::format("{}: unsupported architecture '{}'; this build knows {}", where, wanted,
                            known));
}

}  // namespace

std::span<const Architecture> architectures() {
    return kArchitectures;
}

std::span<const LayerTensorName> layer_tensor_names() {
    return kLayerTensors;
}

const Architecture& find_architecture(std::string_view name, std::string_view where) {
    return find(name, &Architecture::name, where);
}

const Architecture& find_model_type(std::string_view model_type, std::string_view where) {
    return find(model_type, &Architecture::hf_model_type, where);
}

}  // namespace skein::model
