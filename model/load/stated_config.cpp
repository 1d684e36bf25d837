#include "model/load/stated_config.h"

#include <fmt/format.h>

#include <cmath>

#include "model/error.h"

namespace skein::model {
namespace {

// Far above any published model; they keep every product of two extents inside an int.
constexpr std::uint64_t kMaxLayers = 4096;
constexpr std::uint64_t kMaxHeads = 1U << 14;
constexpr std::uint64_t kMaxHeadDim = 1U << 14;
constexpr std::uint64_t kMaxDim = 1U << 24;
constexpr std::uint64_t kMaxVocabulary = 1U << 26;
constexpr std::uint64_t kMaxContext = 1U << 30;

class Checker {
  public:
    explicit Checker(const StatedConfig& stated) : stated_(stated) {}

    ModelConfig check() {
        config_.architecture = stated_.architecture;
        config_.name = stated_.name;
        config_.rope = stated_.rope;
        config_.tied_head = stated_.tied_head;
        config_.qkv_bias = stated_.qkv_bias;
        config_.qk_norm = stated_.qk_norm;
        config_.dim = required(stated_.dim, kMaxDim);
        config_.max_context = required(stated_.max_context, kMaxContext);
        check_layers();
        check_heads();
        check_rope();
        check_numbers();
        check_vocabulary();
        return std::move(config_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", stated_.where, message));
    }

    int in_range(std::string_view key, std::uint64_t value, std::uint64_t limit) const {
        if (value < 1 || value > limit) {
            fail(fmt::format("'{}' is {}, expected 1 to {}", key, value, limit));
        }
        return static_cast<int>(value);
    }

    int required(const StatedNumber& number, std::uint64_t limit) const {
        if (!number.value) fail(fmt::format("required key '{}' is missing", number.key));
        return in_range(number.key, *number.value, limit);
    }

    int optional(const StatedNumber& number, std::uint64_t limit, int otherwise) const {
        return number.value ? in_range(number.key, *number.value, limit) : otherwise;
    }

    int layer_value(const StatedPerLayer& stated, std::size_t layer, std::uint64_t limit) const {
        const bool one_for_all = stated.values.size() == 1;
        return in_range(stated.key, stated.values[one_for_all ? 0 : layer], limit);
    }

    void check_counts(const StatedPerLayer& stated, std::size_t n_layers) const {
        if (stated.values.empty()) fail(fmt::format("required key '{}' is missing", stated.key));
        if (stated.values.size() != 1 && stated.values.size() != n_layers) {
            fail(fmt::format("'{}' has {} entries for {} layers", stated.key, stated.values.size(),
                             n_layers));
        }
    }

    void check_layers() {
        const auto n_layers = static_cast<std::size_t>(required(stated_.n_layers, kMaxLayers));
        const StatedPerLayer& kv =
            stated_.n_kv_heads.values.empty() ? stated_.n_heads : stated_.n_kv_heads;
        for (const StatedPerLayer* stated : {&stated_.n_heads, &kv, &stated_.hidden_dim}) {
            check_counts(*stated, n_layers);
        }
        config_.n_heads = layer_value(stated_.n_heads, 0, kMaxHeads);
        for (std::size_t i = 0; i < n_layers; ++i) {
            const int heads = layer_value(stated_.n_heads, i, kMaxHeads);
            if (heads != config_.n_heads) {
                fail(
                    fmt::format("'{}' differs between layers ({} and {}), which no supported "
                                "architecture has",
                                stated_.n_heads.key, config_.n_heads, heads));
            }
            LayerConfig layer;
            layer.n_kv_heads = layer_value(kv, i, kMaxHeads);
            layer.hidden_dim = layer_value(stated_.hidden_dim, i, kMaxDim);
            if (heads % layer.n_kv_heads != 0) {
                fail(
                    fmt::format("layer {}: {} query heads are not a multiple of {} key-value "
                                "heads",
                                i, heads, layer.n_kv_heads));
            }
            config_.layers.push_back(layer);
        }
        config_.n_kv_heads = config_.layers[0].n_kv_heads;
    }

    void check_heads() {
        if (!stated_.key_length.value && config_.dim % config_.n_heads != 0) {
            fail(fmt::format("'{}' {} is not a multiple of '{}' {}", stated_.dim.key, config_.dim,
                             stated_.n_heads.key, config_.n_heads));
        }
        config_.head_dim = optional(stated_.key_length, kMaxHeadDim, config_.dim / config_.n_heads);
        const int value_length = optional(stated_.value_length, kMaxHeadDim, config_.head_dim);
        if (value_length != config_.head_dim) {
            fail(fmt::format("'{}' {} differs from the key length {}, which is not supported",
                             stated_.value_length.key, value_length, config_.head_dim));
        }
    }

    void check_rope() {
        config_.rope_dim = optional(stated_.rope_dim, kMaxHeadDim, config_.head_dim);
        if (config_.rope_dim > config_.head_dim || config_.rope_dim % 2 != 0) {
            fail(fmt::format("'{}' is {}, expected an even number up to the head size {}",
                             stated_.rope_dim.key, config_.rope_dim, config_.head_dim));
        }
        config_.rope_theta = stated_.rope_theta.value_or(10000.0);
        if (!std::isfinite(config_.rope_theta) || config_.rope_theta <= 0.0) {
            fail(fmt::format("'{}' is {}, expected a positive number", stated_.rope_theta_key,
                             config_.rope_theta));
        }
    }

    void check_numbers() {
        if (!stated_.norm_eps) {
            fail(fmt::format("required key '{}' is missing", stated_.norm_eps_key));
        }
        if (!(*stated_.norm_eps > 0.0 && *stated_.norm_eps < 1.0)) {
            fail(fmt::format("'{}' is {}, expected a number between 0 and 1", stated_.norm_eps_key,
                             *stated_.norm_eps));
        }
        config_.norm_eps = static_cast<float>(*stated_.norm_eps);
    }

    void check_vocabulary() {
        std::optional<std::uint64_t> size = stated_.vocab_size.value;
        if (!size) size = stated_.n_tokens;
        if (!size) size = stated_.n_embeddings;
        if (!size) {
            fail(
                fmt::format("the vocabulary size is unknown: '{}', a tokenizer and the embedding "
                            "matrix are all missing",
                            stated_.vocab_size.key));
        }
        config_.vocab_size = in_range(stated_.vocab_size.key, *size, kMaxVocabulary);
        for (const auto& [count, what] : {std::pair{stated_.n_tokens, "tokens in the tokenizer"},
                                          {stated_.n_embeddings, "rows in the embedding matrix"}}) {
            if (count && *count != *size) {
                fail(fmt::format("the vocabulary size is {} but there are {} {}", *size, *count,
                                 what));
            }
        }
    }

    const StatedConfig& stated_;
    ModelConfig config_;
};

}  // namespace

ModelConfig check_config(const StatedConfig& stated) {
    return Checker(stated).check();
}

}  // namespace skein::model
