#include "model/load/weights.h"

#include <fmt/format.h>

#include <map>
#include <unordered_set>

#include "model/error.h"
#include "model/load/architecture.h"
#include "model/load/mxfp8.h"
#include "model/load/tensor_names.h"

namespace skein::model {
namespace {

/// `n_rows` is 0 for vectors; `row_length` 0 means that the architecture has no such tensor.
struct Shape {
    std::int64_t n_rows = 0;
    std::int64_t row_length = 0;
};

class Binder {
  public:
    Binder(const ModelFile& file, const ModelConfig& config, const BindOptions& options)
        : file_(file), config_(config), options_(options), gguf_(file.format() == "gguf") {
        names_ = gguf_ ? gguf_names()
                       : safetensors_names([&](std::string_view name) { return file.find(name); });
    }

    Weights bind() {
        weights_.token_embedding = tensor(names_.embedding, {config_.vocab_size, config_.dim});
        weights_.output_norm = tensor(names_.output_norm, {0, config_.dim});
        if (config_.tied_head) {
            weights_.output = weights_.token_embedding;
            used_.insert(names_.output);  // some writers store the shared matrix twice
        } else {
            weights_.output = tensor(names_.output, {config_.vocab_size, config_.dim});
        }
        if (file_.find("rope_freqs.weight") != nullptr) {
            weights_.rope_freqs = tensor("rope_freqs.weight", {0, config_.rope_dim / 2});
        }
        weights_.layers.resize(config_.layers.size());
        for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
            bind_fused(i);
            bind_tensors(i);
            if (config_.layers[i].mlp == MlpKind::moe) bind_experts(i);
        }
        account_for_the_rest();
        if (early_names_) {
            weights_.notes.emplace_back(
                "the index tensors have names from before June 2026; what the file does not state "
                "about them is taken from the MiniMax-M3 release");
        }
        if (config_.dense_approximation) {
            weights_.notes.emplace_back(
                "dense approximation: every layer attends to all tokens, the model was trained "
                "with sparse attention");
        }
        return std::move(weights_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", file_.path().string(), message));
    }

    Shape shape_of(const Tensor* LayerWeights::*place, const LayerConfig& layer) const {
        using L = LayerWeights;
        const std::int64_t dim = config_.dim;
        const std::int64_t q = std::int64_t{config_.n_heads} * config_.head_dim;
        const std::int64_t kv = std::int64_t{layer.n_kv_heads} * config_.head_dim;
        if (place == &L::attn_norm || place == &L::ffn_norm) return {0, dim};
        if (place == &L::wq) return {q, dim};
        if (place == &L::wk || place == &L::wv) return {kv, dim};
        if (place == &L::wo) return {dim, q};
        if (place == &L::bq) return {0, config_.qkv_bias ? q : 0};
        if (place == &L::bk || place == &L::bv) return {0, config_.qkv_bias ? kv : 0};
        if (place == &L::q_norm || place == &L::k_norm) {
            if (config_.qk_norm == QkNorm::none) return {};
            if (config_.qk_norm == QkNorm::per_head) return {0, config_.head_dim};
            return {0, place == &L::q_norm ? q : kv};
        }
        if (place == &L::index_wq || place == &L::index_wk || place == &L::index_q_norm ||
            place == &L::index_k_norm) {
            return index_shape(place, layer);
        }
        return mlp_shape(place, layer);
    }

    Shape index_shape(const Tensor* LayerWeights::*place, const LayerConfig& layer) const {
        using L = LayerWeights;
        if (layer.attention != AttentionKind::msa) return {};
        const std::int64_t width = config_.msa.index_dim;
        if (place == &L::index_wq) return {layer.n_kv_heads * width, config_.dim};
        if (place == &L::index_wk) return {width, config_.dim};
        return {0, width};
    }

    Shape mlp_shape(const Tensor* LayerWeights::*place, const LayerConfig& layer) const {
        using L = LayerWeights;
        const std::int64_t dim = config_.dim;
        const MoeConfig& moe = config_.moe;
        const bool experts = layer.mlp == MlpKind::moe;
        if (place == &L::router) return {moe.n_experts, experts ? dim : 0};
        if (place == &L::router_bias) {
            return {0, experts && moe.selection_bias ? moe.n_experts : 0};
        }
        const std::int64_t shared = experts ? moe.shared_dim : 0;
        if (place == &L::shared_gate || place == &L::shared_up) {
            return {shared, shared > 0 ? dim : 0};
        }
        if (place == &L::shared_down) return {dim, shared};
        if (experts) return {};
        if (place == &L::w_down) return {dim, layer.hidden_dim};
        return {layer.hidden_dim, dim};  // w_gate, w_up
    }

    /// Parts of tensors that hold several places, where the file has such tensors.
    void bind_fused(std::size_t i) {
        LayerWeights& layer = weights_.layers[i];
        for (const FusedName& row : fused_names()) {
            const std::string_view suffix = gguf_ ? row.gguf : row.safetensors;
            if (suffix.empty() || shape_of(row.parts[0], config_.layers[i]).row_length == 0) {
                continue;
            }
            const std::string name = names_.layer_tensor(i, suffix);
            if (file_.find(name) == nullptr) continue;
            Shape whole{0, config_.dim};
            for (const auto part : row.parts) {
                if (part != nullptr) whole.n_rows += shape_of(part, config_.layers[i]).n_rows;
            }
            const Tensor* fused = tensor(name, whole);
            std::int64_t first = 0;
            for (const auto part : row.parts) {
                if (part == nullptr) continue;
                const std::int64_t n = shape_of(part, config_.layers[i]).n_rows;
                layer.*part = rows_of(*fused, first, n);
                first += n;
            }
        }
    }

    void bind_tensors(std::size_t i) {
        LayerWeights& layer = weights_.layers[i];
        for (const LayerTensorName& row : layer_tensor_names()) {
            const Shape shape = shape_of(row.place, config_.layers[i]);
            if (shape.row_length == 0 || layer.*row.place != nullptr) continue;
            const Suffixes& suffixes = gguf_ ? row.gguf : row.safetensors;
            layer.*row.place = tensor(present(i, suffixes), shape);
        }
    }

    /// The first of these names that the file has, else the usual one.
    std::string present(std::size_t i, const Suffixes& suffixes) {
        for (const std::string_view suffix : suffixes) {
            if (suffix.empty()) continue;
            std::string name = names_.layer_tensor(i, suffix);
            if (file_.find(name) == nullptr) continue;
            early_names_ = early_names_ || (gguf_ && suffix != suffixes[0]);
            return name;
        }
        return names_.layer_tensor(i, suffixes[0]);
    }

    void bind_experts(std::size_t i) {
        LayerWeights& layer = weights_.layers[i];
        const std::int64_t width = config_.moe.expert_dim;
        const std::string fused = names_.layer_tensor(i, kFusedExperts[gguf_ ? 0 : 1]);
        if (file_.find(fused) != nullptr) {
            const Tensor* all = stacked(fused, {2 * width, config_.dim});
            for (std::int64_t e = 0; e < config_.moe.n_experts; ++e) {
                layer.expert_gate.push_back(rows_of(*all, 2 * e * width, width));
                layer.expert_up.push_back(rows_of(*all, (2 * e + 1) * width, width));
            }
        }
        for (const ExpertName& row : expert_names()) {
            if (!(layer.*row.place).empty()) continue;
            const bool down = row.place == &LayerWeights::expert_down;
            const Shape shape = down ? Shape{config_.dim, width} : Shape{width, config_.dim};
            layer.*row.place = experts(i, row, shape);
        }
    }

    std::vector<const Tensor*> experts(std::size_t i, const ExpertName& row, Shape shape) {
        std::vector<const Tensor*> all;
        const std::string_view suffix = gguf_ ? row.stacked : row.stacked_safetensors;
        const std::string name = suffix.empty() ? "" : names_.layer_tensor(i, suffix);
        if (gguf_ || (!name.empty() && file_.find(name) != nullptr)) {
            const Tensor* whole = stacked(name, shape);
            for (std::int64_t e = 0; e < config_.moe.n_experts; ++e) {
                all.push_back(rows_of(*whole, e * shape.n_rows, shape.n_rows));
            }
            return all;
        }
        for (int e = 0; e < config_.moe.n_experts; ++e) {
            std::string spellings[2];
            Suffixes suffixes;
            for (std::size_t s = 0; s < suffixes.size(); ++s) {
                spellings[s] = fmt::format(fmt::runtime(row.separate[s]), e);
                suffixes[s] = spellings[s];
            }
            all.push_back(tensor(present(i, suffixes), shape));
        }
        return all;
    }

    const Tensor* found(const std::string& name) {
        const Tensor* tensor = file_.find(name);
        if (tensor == nullptr && name.find(".index") != std::string::npos) {
            fail(missing_index_text(config_.architecture, name));
        }
        if (tensor == nullptr) {
            fail(fmt::format("architecture '{}' needs tensor '{}', the file does not have it",
                             config_.architecture, name));
        }
        used_.insert(tensor->name);
        return tensor;
    }

    const Tensor* tensor(const std::string& name, Shape wanted) {
        const Tensor* tensor = found(name);
        const std::int64_t n_rows = wanted.n_rows == 0 ? 1 : wanted.n_rows;
        if (tensor->row_length() != wanted.row_length || tensor->n_rows() != n_rows) {
            fail(fmt::format("tensor '{}' is {} rows of {}, the metadata says {} rows of {}", name,
                             tensor->n_rows(), tensor->row_length(), n_rows, wanted.row_length));
        }
        if (wanted.n_rows == 0 && !is_plain(tensor->type)) {
            fail(fmt::format("tensor '{}' is a vector of type {}, expected F32, F16 or BF16", name,
                             dtype_info(tensor->type).name));
        }
        return converted(*tensor);
    }

    static bool is_plain(DType type) {
        return type == DType::f32 || type == DType::f16 || type == DType::bf16;
    }

    /// The tensor itself, or what its 8-bit weights and their scales stand for.
    const Tensor* converted(const Tensor& tensor) {
        if (tensor.type == DType::u8) {
            fail(fmt::format("tensor '{}' has type U8, which is no type for weights", tensor.name));
        }
        if (tensor.type != DType::f8_e4m3) return &tensor;
        const Tensor* scales = file_.find(tensor.name + std::string(kMxScaleSuffix));
        if (scales == nullptr) {
            fail(
                fmt::format("tensor '{}' has type F8_E4M3 and needs '{}{}', the file does not "
                            "have it; other scalings of 8-bit weights are not supported",
                            tensor.name, tensor.name, kMxScaleSuffix));
        }
        used_.insert(scales->name);
        if (!options_.convert) return &tensor;
        ConvertedTensor done = convert_mxfp8(tensor, *scales, file_.path().string());
        weights_.converted.push_back(std::move(done.memory));
        return &weights_.derived.emplace_back(std::move(done.tensor));
    }

    /// A tensor of one matrix of shape `each` per expert.
    const Tensor* stacked(const std::string& name, Shape each) {
        const Tensor* tensor = found(name);
        const auto& dims = tensor->dims;
        if (dims[0] != each.row_length || dims[1] != each.n_rows ||
            dims[2] != config_.moe.n_experts || dims[3] != 1) {
            fail(
                fmt::format("tensor '{}' is {} x {} x {} x {}, the metadata says {} experts with "
                            "{} rows of {}",
                            name, dims[0], dims[1], dims[2], dims[3], config_.moe.n_experts,
                            each.n_rows, each.row_length));
        }
        return converted(*tensor);
    }

    /// Rows [first, first + n) of a checked tensor as a tensor of their own.
    const Tensor* rows_of(const Tensor& whole, std::int64_t first, std::int64_t n) {
        Tensor part;
        part.name = fmt::format("{}[{}:{}]", whole.name, first, first + n);
        part.type = whole.type;
        part.dims = {whole.row_length(), n, 1, 1};
        part.n_dims = 2;
        part.data = whole.data + static_cast<std::size_t>(first) * whole.row_bytes();
        part.bytes = static_cast<std::size_t>(n) * whole.row_bytes();
        return &weights_.derived.emplace_back(std::move(part));
    }

    /// A tensor nobody reads (an extra bias, an adapter) would silently change the results, unless
    /// it is known not to.
    void account_for_the_rest() {
        std::map<std::string_view, int> ignored;
        for (const Tensor& t : file_.tensors()) {
            if (used_.contains(t.name)) continue;
            const auto reason = ignored_because(config_, t.name);
            if (!reason) {
                fail(
                    fmt::format("architecture '{}' has no place for tensor '{}'; ignoring it "
                                "would change the results",
                                config_.architecture, t.name));
            }
            ++ignored[*reason];
        }
        for (const auto& [reason, count] : ignored) {
            weights_.notes.push_back(
                fmt::format("{} tensor{} ignored: {}", count, count == 1 ? "" : "s", reason));
        }
    }

    const ModelFile& file_;
    const ModelConfig& config_;
    const BindOptions& options_;
    const bool gguf_;
    bool early_names_ = false;
    NamingScheme names_;
    Weights weights_;
    std::unordered_set<std::string_view> used_;
};

}  // namespace

Weights bind_weights(const ModelFile& file, const ModelConfig& config, const BindOptions& options) {
    find_architecture(config.architecture, file.path().string());
    return Binder(file, config, options).bind();
}

}  // namespace skein::model
