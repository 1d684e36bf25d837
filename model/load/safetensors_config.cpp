// config.json as a StatedConfig.  Source: the configuration classes of huggingface/transformers and
// the config.json of the MiniMax-M3 release.
#include <fmt/format.h>

#include <boost/json.hpp>

#include <algorithm>
#include <cmath>

#include "model/error.h"
#include "model/load/architecture.h"
#include "model/load/json_text.h"
#include "model/load/printable.h"
#include "model/load/safetensors_model.h"
#include "model/load/stated_config.h"

namespace skein::model {
namespace {

namespace json = boost::json;

class Reader {
  public:
    /// `config` is the object that describes the text model.
    Reader(const json::value& config, std::string_view where, const Architecture& row)
        : config_(config, where), where_(where), row_(row) {}

    StatedConfig read(const ConfigOptions& options) {
        refuse_unsupported();
        stated_.where = where_;
        stated_.architecture = row_.name;
        stated_.name = config_.string("_name_or_path").value_or("");
        stated_.n_layers = number("num_hidden_layers");
        stated_.dim = number("hidden_size");
        stated_.max_context = number("max_position_embeddings");
        stated_.n_heads = per_layer("num_attention_heads");
        stated_.n_kv_heads = per_layer("num_key_value_heads");
        stated_.hidden_dim =
            per_layer(row_.sparse_attention ? "dense_intermediate_size" : "intermediate_size");
        stated_.key_length = number("head_dim");
        stated_.value_length = {"head_dim", std::nullopt};
        stated_.vocab_size = number("vocab_size");
        stated_.norm_eps_key = "rms_norm_eps";
        stated_.norm_eps = config_.number("rms_norm_eps");
        stated_.tied_head = config_.boolean("tie_word_embeddings").value_or(false);
        stated_.qkv_bias = row_.qkv_bias;
        stated_.qk_norm = row_.qk_norm;
        stated_.zero_centred_norms =
            row_.zero_centred_norms && config_.boolean("use_gemma_norm").value_or(true);
        stated_.activation = row_.activation;
        stated_.activation_alpha = config_.number("swiglu_alpha");
        stated_.activation_limit = config_.number("swiglu_limit");
        read_rope();
        if (row_.experts) read_experts();
        if (row_.sparse_attention) read_sparse_attention(options);
        return std::move(stated_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", where_, message));
    }
    [[noreturn]] void refuse(std::string_view key, std::string_view value) const {
        fail(fmt::format("'{}' is {}, which is not supported for architecture '{}'", key,
                         printable(value), row_.name));
    }

    StatedNumber number(const char* key) const { return {key, config_.unsigned_value(key)}; }

    StatedPerLayer per_layer(const char* key) const {
        const auto value = config_.unsigned_value(key);
        return {key, value ? std::vector{*value} : std::vector<std::uint64_t>{}};
    }

    /// Fields that change the forward pass in ways that this build does not have.
    void refuse_unsupported() const {
        const auto activation = config_.string("hidden_act").value_or("silu");
        // transformers writes "silu" for MiniMax-M3 too; alpha and limit say what is meant.
        const bool known = activation == "silu" || (row_.activation == ActivationKind::swigluoai &&
                                                    activation == "swigluoai");
        if (!known) refuse("hidden_act", activation);
        for (const char* key : {"rope_scaling", "rope_parameters"}) {
            const json::value* scaling = config_.find(key);
            if (scaling == nullptr) continue;
            const JsonObject object(*scaling, where_);
            const auto legacy = object.string("type").value_or("default");
            const auto type = object.string("rope_type").value_or(legacy);
            if (type != "default") refuse(key, json::serialize(*scaling));
        }
        for (const char* key : {"use_sliding_window", "attention_output_gate"}) {
            if (config_.boolean(key).value_or(false)) refuse(key, "true");
        }
        if (row_.qk_norm != QkNorm::none && !config_.boolean("use_qk_norm").value_or(true)) {
            refuse("use_qk_norm", "false");
        }
        const bool all_heads = row_.qk_norm == QkNorm::all_heads;
        const std::string_view usual = all_heads ? "per_layer" : "per_head";
        const auto norm = config_.string("qk_norm_type").value_or(usual);
        if (norm != usual) refuse("qk_norm_type", norm);
    }

    /// The rotated channels are `rotary_dim`, or a fraction of the head; files that state both must
    /// agree.
    void read_rope() {
        // Only GGUF converters reorder q and k; the published checkpoints rotate halves.
        stated_.rope = RopeKind::half_split;
        stated_.rope_theta_key = "rope_theta";
        stated_.rope_theta = config_.number("rope_theta");
        std::optional<double> factor = config_.number("partial_rotary_factor");
        if (const json::value* value = config_.find("rope_parameters")) {
            const JsonObject rope(*value, where_);
            if (const auto theta = rope.number("rope_theta")) stated_.rope_theta = theta;
            if (const auto part = rope.number("partial_rotary_factor")) factor = part;
        }
        stated_.rope_dim = number("rotary_dim");
        if (!factor || *factor == 1.0) return;
        if (!row_.experts) refuse("partial_rotary_factor", fmt::format("{}", *factor));
        const std::optional<std::uint64_t> head = stated_.key_length.value;
        const double channels = *factor * static_cast<double>(head.value_or(0));
        if (!(channels >= 1.0 && channels < 65536.0) || channels != std::floor(channels)) {
            fail(
                fmt::format("'partial_rotary_factor' {} of a head of {} is not a whole number of "
                            "channels",
                            *factor, head.value_or(0)));
        }
        const auto rotated = static_cast<std::uint64_t>(channels);
        if (stated_.rope_dim.value.value_or(rotated) != rotated) {
            fail(fmt::format("'rotary_dim' is {}, 'partial_rotary_factor' {} of a head of {} is {}",
                             *stated_.rope_dim.value, *factor, *head, rotated));
        }
        stated_.rope_dim = {"partial_rotary_factor", rotated};
    }

    const json::array& array(const JsonObject& object, const char* key) const {
        const json::array* list = object.find(key)->if_array();
        if (list == nullptr) fail(fmt::format("'{}' is not an array", key));
        return *list;
    }

    /// One 0 or 1 a layer.
    StatedKinds flags(const JsonObject& object, const char* key) const {
        StatedKinds kinds{key, {}, std::nullopt};
        for (const json::value& item : array(object, key)) {
            const auto* flag = item.if_int64();
            if (flag == nullptr || (*flag != 0 && *flag != 1)) {
                fail(fmt::format("'{}' holds {}, expected 0 or 1", key,
                                 printable(json::serialize(item))));
            }
            kinds.flags.push_back(*flag == 1);
        }
        return kinds;
    }

    /// One name a layer, `special` or `plain`.
    StatedKinds names(const char* key, std::string_view special, std::string_view plain) const {
        StatedKinds kinds{key, {}, std::nullopt};
        for (const json::value& item : array(config_, key)) {
            const std::string name = item.is_string() ? std::string(item.get_string()) : "";
            if (name != special && name != plain) {
                fail(fmt::format("'{}' holds {}, expected \"{}\" or \"{}\"", key,
                                 printable(json::serialize(item)), special, plain));
            }
            kinds.flags.push_back(name == special);
        }
        return kinds;
    }

    void read_experts() {
        const bool qwen = row_.name == "qwen3moe";
        StatedMoe& moe = stated_.moe;
        moe.n_experts = number(qwen ? "num_experts" : "num_local_experts");
        moe.n_used = number("num_experts_per_tok");
        moe.expert_dim = number(qwen ? "moe_intermediate_size" : "intermediate_size");
        moe.scale_key = "routed_scaling_factor";
        moe.scale = config_.number("routed_scaling_factor");
        moe.renormalise = qwen ? config_.boolean("norm_topk_prob").value_or(false) : true;
        moe.selection_bias =
            row_.selection_bias && config_.boolean("use_routing_bias").value_or(true);
        moe.router = row_.router;
        if (const auto scoring = config_.string("scoring_func")) {
            if (*scoring != "sigmoid" && *scoring != "softmax") refuse("scoring_func", *scoring);
            moe.router = *scoring == "sigmoid" ? RouterKind::sigmoid : RouterKind::softmax;
        }
        stated_.experts = expert_layers(qwen);
        if (!row_.sparse_attention) return;
        if (!moe.scale) fail("required key 'routed_scaling_factor' is missing");
        const std::uint64_t count = config_.unsigned_value("n_shared_experts").value_or(1);
        if (count > 1) refuse("n_shared_experts", fmt::format("{}", count));
        moe.shared_dim = number("shared_intermediate_size");
        if (count == 0) moe.shared_dim.value.reset();
    }

    StatedKinds expert_layers(bool qwen) const {
        if (config_.find("mlp_layer_types") != nullptr) {
            return names("mlp_layer_types", "sparse", "dense");
        }
        if (config_.find("moe_layer_freq") != nullptr) return flags(config_, "moe_layer_freq");
        if (row_.sparse_attention) {
            fail("neither 'moe_layer_freq' nor 'mlp_layer_types' says which layers have experts");
        }
        return qwen ? qwen_expert_layers() : StatedKinds{"num_local_experts", {}, 0};
    }

    /// Every `decoder_sparse_step`-th layer, but for those named as dense.
    StatedKinds qwen_expert_layers() const {
        const std::uint64_t step = config_.unsigned_value("decoder_sparse_step").value_or(1);
        const std::uint64_t n_layers = config_.unsigned_value("num_hidden_layers").value_or(0);
        if (step < 1) fail("'decoder_sparse_step' is 0, expected 1 or more");
        StatedKinds kinds{"decoder_sparse_step", {}, std::nullopt};
        for (std::uint64_t i = 0; i < std::min(n_layers, kMaxLayers); ++i) {
            kinds.flags.push_back((i + 1) % step == 0);
        }
        if (config_.find("mlp_only_layers") == nullptr) return kinds;
        for (const json::value& item : array(config_, "mlp_only_layers")) {
            const auto* layer = item.if_int64();
            if (layer == nullptr || *layer < 0) {
                fail(fmt::format("'mlp_only_layers' holds {}, expected layer numbers",
                                 printable(json::serialize(item))));
            }
            const auto i = static_cast<std::uint64_t>(*layer);
            if (i < kinds.flags.size()) kinds.flags[static_cast<std::size_t>(i)] = false;
        }
        return kinds;
    }

    void read_sparse_attention(const ConfigOptions& options) {
        stated_.dense_approximation = options.dense_approximation;
        StatedMsa& msa = stated_.msa;
        if (const json::value* value = config_.find("sparse_attention_config")) {
            read_release_form(JsonObject(*value, where_));
            return;
        }
        if (config_.find("layer_types") == nullptr) {
            if (options.dense_approximation) return;
            fail(
                "neither 'sparse_attention_config' nor 'layer_types' says which layers have "
                "sparse attention; dense attention is not what this model was trained with and "
                "must be asked for");
        }
        stated_.sparse_attention = names("layer_types", "minimax_m3_sparse", "full_attention");
        msa.index_heads = number("index_n_heads");
        msa.index_dim = number("index_head_dim");
        msa.block_tokens = number("index_block_size");
        msa.top_k = number("index_topk_blocks");
        msa.init_blocks = number("index_init_blocks");
        msa.local_blocks = number("index_local_blocks");
    }

    /// `sparse_attention_config` as the release has it.
    void read_release_form(const JsonObject& sparse) {
        if (!sparse.boolean("use_sparse_attention").value_or(true)) return;
        if (sparse.find("sparse_attention_freq") == nullptr) {
            fail("required key 'sparse_attention_freq' is missing");
        }
        stated_.sparse_attention = flags(sparse, "sparse_attention_freq");
        const auto score = sparse.string("sparse_score_type").value_or("max");
        if (score != "max") refuse("sparse_score_type", score);
        if (sparse.find("sparse_disable_index_value") != nullptr) {
            const StatedKinds disabled = flags(sparse, "sparse_disable_index_value");
            for (std::size_t i = 0; i < disabled.flags.size(); ++i) {
                const bool used = i < stated_.sparse_attention.flags.size() &&
                                  stated_.sparse_attention.flags[i] && !disabled.flags[i];
                if (used) refuse("sparse_disable_index_value", fmt::format("0 for layer {}", i));
            }
        }
        const auto number_of = [&](const char* key) {
            return StatedNumber{key, sparse.unsigned_value(key)};
        };
        StatedMsa& msa = stated_.msa;
        msa.index_heads = number_of("sparse_num_index_heads");
        msa.index_dim = number_of("sparse_index_dim");
        msa.block_tokens = number_of("sparse_block_size");
        msa.top_k = number_of("sparse_topk_blocks");
        msa.init_blocks = number_of("sparse_init_block");
        msa.local_blocks = number_of("sparse_local_block");
    }

    JsonObject config_;
    std::string where_;
    const Architecture& row_;
    StatedConfig stated_;
};

}  // namespace

ModelConfig safetensors_config(const json::value& config, std::string_view where,
                               bool has_query_bias, std::uint64_t n_embeddings,
                               const ConfigOptions& options) {
    const JsonObject outer(config, where);
    const auto type = outer.string("model_type");
    if (!type) throw Error(fmt::format("{}: required key 'model_type' is missing", where));
    const Architecture& row = find_model_type(*type, where);
    // Multimodal models describe their text part in an object of its own.
    const json::value* text = outer.find("text_config");
    StatedConfig stated = Reader(text == nullptr ? config : *text, where, row).read(options);
    stated.qkv_bias = stated.qkv_bias || has_query_bias;
    if (n_embeddings > 0) stated.n_embeddings = n_embeddings;
    return check_config(stated);
}

}  // namespace skein::model
