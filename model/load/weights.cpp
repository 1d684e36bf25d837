#include "model/load/weights.h"

#include <fmt/format.h>

#include <unordered_set>

#include "model/error.h"
#include "model/load/architecture.h"

namespace skein::model {
namespace {

class Binder {
  public:
    Binder(const ModelFile& file, const ModelConfig& config)
        : file_(file), config_(config), column_(file.format() == "gguf" ? 0 : 1) {}

    Weights bind() {
        Weights weights;
        weights.token_embedding = matrix(kEmbeddingName[column_], config_.vocab_size, config_.dim);
        weights.output_norm = vector(kOutputNormName[column_], config_.dim);
        if (config_.tied_head) {
            weights.output = weights.token_embedding;
            used_.insert(kOutputName[column_]);  // some writers store the shared matrix twice
        } else {
            weights.output = matrix(kOutputName[column_], config_.vocab_size, config_.dim);
        }
        if (file_.find("rope_freqs.weight") != nullptr) {
            weights.rope_freqs = vector("rope_freqs.weight", config_.rope_dim / 2);
        }
        weights.layers.resize(config_.layers.size());
        for (std::size_t i = 0; i < weights.layers.size(); ++i) bind_layer(weights.layers[i], i);
        refuse_unknown_tensors();
        return weights;
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", file_.path().string(), message));
    }

    void bind_layer(LayerWeights& layer, std::size_t i) {
        for (const LayerTensorName& row : layer_tensor_names()) {
            const Shape shape = shape_of(row.place, config_.layers[i]);
            if (shape.row_length == 0) continue;  // not part of this architecture
            const std::string_view pattern = column_ == 0 ? row.gguf : row.safetensors;
            layer.*row.place = tensor(fmt::format(fmt::runtime(pattern), i), shape);
        }
    }

    /// n_rows is 0 for vectors; row_length 0 means that the architecture has no such tensor.
    struct Shape {
        std::int64_t n_rows = 0;
        std::int64_t row_length = 0;
    };

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
            return {0, config_.qk_norm == QkNorm::per_head ? config_.head_dim : 0};
        }
        if (place == &L::w_down) return {dim, layer.hidden_dim};
        return {layer.hidden_dim, dim};  // w_gate, w_up
    }

    const Tensor* matrix(std::string_view name, std::int64_t n_rows, std::int64_t row_length) {
        return tensor(std::string(name), {n_rows, row_length});
    }
    const Tensor* vector(std::string_view name, std::int64_t length) {
        return tensor(std::string(name), {0, length});
    }

    const Tensor* tensor(const std::string& name, Shape wanted) {
        const Tensor* found = file_.find(name);
        if (found == nullptr) {
            fail(fmt::format("architecture '{}' needs tensor '{}', the file does not have it",
                             config_.architecture, name));
        }
        const std::int64_t n_rows = wanted.n_rows == 0 ? 1 : wanted.n_rows;
        if (found->row_length() != wanted.row_length || found->n_rows() != n_rows) {
            fail(fmt::format("tensor '{}' is {} rows of {}, the metadata says {} rows of {}", name,
                             found->n_rows(), found->row_length(), n_rows, wanted.row_length));
        }
        if (wanted.n_rows == 0 && dtype_info(found->type).block_elements != 1) {
            fail(fmt::format("tensor '{}' is a vector of type {}, expected F32, F16 or BF16", name,
                             dtype_info(found->type).name));
        }
        used_.insert(found->name);
        return found;
    }

    /// A tensor nobody reads (an extra bias, an adapter) would silently change the results.
    void refuse_unknown_tensors() const {
        for (const Tensor& t : file_.tensors()) {
            // Old checkpoints store the rotary frequencies, which follow from the config.
            if (used_.contains(t.name) || t.name.ends_with(".rotary_emb.inv_freq")) continue;
            fail(
                fmt::format("architecture '{}' has no place for tensor '{}'; ignoring it would "
                            "change the results",
                            config_.architecture, t.name));
        }
    }

    const ModelFile& file_;
    const ModelConfig& config_;
    const std::size_t column_;
    std::unordered_set<std::string_view> used_;
};

}  // namespace

Weights bind_weights(const ModelFile& file, const ModelConfig& config) {
    find_architecture(config.architecture, file.path().string());
    return Binder(file, config).bind();
}

}  // namespace skein::model
