#include "model/load/architecture.h"

#include <fmt/format.h>

#include <string>

#include "model/error.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

// The llama converter permutes q and k rows, so that its GGUF files join channels (2i, 2i + 1).
constexpr Architecture kArchitectures[] = {
    {.name = "llama", .hf_model_types = {"llama"}, .gguf_rope = RopeKind::interleaved},
    {.name = "qwen2", .hf_model_types = {"qwen2"}, .qkv_bias = true},
    {.name = "qwen3", .hf_model_types = {"qwen3"}, .qk_norm = QkNorm::per_head},
    {.name = "qwen3moe",
     .hf_model_types = {"qwen3_moe"},
     .qk_norm = QkNorm::per_head,
     .experts = true},
    {.name = "minimax-m2",
     .hf_model_types = {"minimax_m2"},
     .qk_norm = QkNorm::all_heads,
     .experts = true,
     .router = RouterKind::sigmoid,
     .selection_bias = true},
    {.name = "minimax-m3",
     .hf_model_types = {"minimax_m3_vl", "minimax_m3_vl_text"},
     .qk_norm = QkNorm::per_head,
     .activation = ActivationKind::swigluoai,
     .sparse_attention = true,
     .experts = true,
     .router = RouterKind::sigmoid,
     .selection_bias = true,
     .zero_centred_norms = true},
};

[[noreturn]] void unknown(std::string_view wanted, std::string_view where,
                          const std::string& known) {
    throw Error(fmt::format("{}: unsupported architecture '{}'; this build knows {}", where,
                            printable(wanted), known));
}

}  // namespace

std::span<const Architecture> architectures() {
    return kArchitectures;
}

const Architecture& find_architecture(std::string_view name, std::string_view where) {
    std::string known;
    for (const Architecture& row : kArchitectures) {
        if (row.name == name) return row;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    unknown(name, where, known);
}

const Architecture& find_model_type(std::string_view model_type, std::string_view where) {
    std::string known;
    for (const Architecture& row : kArchitectures) {
        for (const std::string_view type : row.hf_model_types) {
            if (type.empty()) continue;
            if (type == model_type) return row;
            known += (known.empty() ? "" : ", ") + std::string(type);
        }
    }
    unknown(model_type, where, known);
}

}  // namespace skein::model
