#include "model/load/stated_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "model/error.h"

namespace skein::model {
namespace {

// Far above any published model; they keep every product of two extents inside an int.
constexpr std::uint64_t kMaxHeads = 1U << 14;
constexpr std::uint64_t kMaxHeadDim = 1U << 14;
constexpr std::uint64_t kMaxDim = 1U << 24;
constexpr std::uint64_t kMaxVocabulary = 1U << 26;
constexpr std::uint64_t kMaxContext = 1U << 30;
constexpr std::uint64_t kMaxExperts = 1U << 14;
// A cache block holds 128 tokens and a block of the selection must not cross it.
constexpr std::uint64_t kMinSelectionBlock = 8;
constexpr std::uint64_t kMaxSelectionBlock = 128;

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
        config_.zero_centred_norms = stated_.zero_centred_norms;
        config_.dense_approximation = stated_.dense_approximation;
        config_.dim = required(stated_.dim, kMaxDim);
        config_.max_context = required(stated_.max_context, kMaxContext);
        check_layers();
        check_heads();
        check_rope();
        check_activation();
        check_msa();
        check_moe();
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

    template <typename Kind>
    bool any_layer(Kind LayerConfig::*field, Kind kind) const {
        return std::any_of(config_.layers.begin(), config_.layers.end(),
                           [&](const LayerConfig& layer) { return layer.*field == kind; });
    }

    /// Whether layer i is of the special kind.
    bool is_special(const StatedKinds& stated, std::size_t i) const {
        return stated.flags.empty() ? stated.from && i >= *stated.from : stated.flags[i];
    }

    void check_kinds(std::size_t n_layers) {
        for (const StatedKinds* stated : {&stated_.sparse_attention, &stated_.experts}) {
            if (!stated->flags.empty() && stated->flags.size() != n_layers) {
                fail(fmt::format("'{}' has {} entries for {} layers", stated->key,
                                 stated->flags.size(), n_layers));
            }
            if (stated->flags.empty() && stated->from.value_or(0) > n_layers) {
                fail(fmt::format("'{}' is {}, the model has {} layers", stated->key, *stated->from,
                                 n_layers));
            }
        }
        config_.layers.resize(n_layers);
        for (std::size_t i = 0; i < n_layers; ++i) {
            LayerConfig& layer = config_.layers[i];
            if (is_special(stated_.experts, i)) layer.mlp = MlpKind::moe;
            if (is_special(stated_.sparse_attention, i) && !stated_.dense_approximation) {
                layer.attention = AttentionKind::msa;
            }
        }
    }

    void check_layers() {
        const auto n_layers = static_cast<std::size_t>(required(stated_.n_layers, kMaxLayers));
        const StatedPerLayer& kv =
            stated_.n_kv_heads.values.empty() ? stated_.n_heads : stated_.n_kv_heads;
        check_kinds(n_layers);
        check_counts(stated_.n_heads, n_layers);
        check_counts(kv, n_layers);
        if (any_layer(&LayerConfig::mlp, MlpKind::dense)) {
            check_counts(stated_.hidden_dim, n_layers);
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
            LayerConfig& layer = config_.layers[i];
            layer.n_kv_heads = layer_value(kv, i, kMaxHeads);
            if (layer.mlp == MlpKind::dense) {
                layer.hidden_dim = layer_value(stated_.hidden_dim, i, kMaxDim);
            }
            if (heads % layer.n_kv_heads != 0) {
                fail(
                    fmt::format("layer {}: {} query heads are not a multiple of {} key-value "
                                "heads",
                                i, heads, layer.n_kv_heads));
            }
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

    void check_activation() {
        config_.activation = stated_.activation;
        const auto positive = [&](const char* what, std::optional<double> value, float otherwise) {
            if (!value) return otherwise;
            if (!std::isfinite(*value) || *value <= 0.0) {
                fail(fmt::format("the {} of the activation is {}, expected a positive number", what,
                                 *value));
            }
            return static_cast<float>(*value);
        };
        config_.activation_alpha =
            positive("alpha", stated_.activation_alpha, config_.activation_alpha);
        config_.activation_limit =
            positive("limit", stated_.activation_limit, config_.activation_limit);
    }

    void check_msa() {
        if (!any_layer(&LayerConfig::attention, AttentionKind::msa)) return;
        const StatedMsa& stated = stated_.msa;
        MsaConfig& msa = config_.msa;
        const int heads = required(stated.index_heads, kMaxHeads);
        for (std::size_t i = 0; i < config_.layers.size(); ++i) {
            const LayerConfig& layer = config_.layers[i];
            if (layer.attention != AttentionKind::msa || layer.n_kv_heads == heads) continue;
            fail(
                fmt::format("layer {}: '{}' is {}, expected one index head for each of the {} "
                            "key-value heads",
                            i, stated.index_heads.key, heads, layer.n_kv_heads));
        }
        msa.index_dim = required(stated.index_dim, kMaxHeadDim);
        if (msa.index_dim < config_.rope_dim) {
            fail(fmt::format("'{}' is {}, less than the {} rotated channels", stated.index_dim.key,
                             msa.index_dim, config_.rope_dim));
        }
        msa.block_tokens = required(stated.block_tokens, kMaxContext);
        const auto block = static_cast<std::uint64_t>(msa.block_tokens);
        if (!std::has_single_bit(block) || block < kMinSelectionBlock ||
            block > kMaxSelectionBlock) {
            fail(fmt::format("'{}' is {}, expected a power of two from {} to {}",
                             stated.block_tokens.key, block, kMinSelectionBlock,
                             kMaxSelectionBlock));
        }
        msa.top_k = required(stated.top_k, kMaxContext);
        if (stated.init_blocks.value.value_or(0) > 0) {
            msa.init_blocks = required(stated.init_blocks, kMaxContext);
        }
        msa.local_blocks = optional(stated.local_blocks, kMaxContext, 1);
        if (std::int64_t{msa.init_blocks} + msa.local_blocks > msa.top_k) {
            fail(
                fmt::format("'{}' {} is less than the {} first and {} last blocks that are always "
                            "chosen",
                            stated.top_k.key, msa.top_k, msa.init_blocks, msa.local_blocks));
        }
    }

    void check_moe() {
        if (!any_layer(&LayerConfig::mlp, MlpKind::moe)) return;
        const StatedMoe& stated = stated_.moe;
        MoeConfig& moe = config_.moe;
        moe.n_experts = required(stated.n_experts, kMaxExperts);
        moe.n_used = required(stated.n_used, kMaxExperts);
        if (moe.n_used > moe.n_experts) {
            fail(fmt::format("'{}' is {}, more than the {} experts", stated.n_used.key, moe.n_used,
                             moe.n_experts));
        }
        moe.expert_dim = required(stated.expert_dim, kMaxDim);
        if (stated.shared_dim.value.value_or(0) > 0) {
            moe.shared_dim = required(stated.shared_dim, kMaxDim);
        }
        const double scale = stated.scale.value_or(1.0);
        if (!std::isfinite(scale) || scale <= 0.0) {
            fail(fmt::format("'{}' is {}, expected a positive number", stated.scale_key, scale));
        }
        moe.scale = static_cast<float>(scale);
        moe.router = stated.router;
        moe.selection_bias = stated.selection_bias;
        moe.renormalise = stated.renormalise;
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
