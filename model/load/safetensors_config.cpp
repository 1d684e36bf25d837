// config.json as a StatedConfig.  Source: the configuration classes of huggingface/transformers.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "model/error.h"
#include "model/load/architecture.h"
#include "model/load/json_text.h"
#include "model/load/safetensors_model.h"
#include "model/load/stated_config.h"

namespace skein::model {
namespace {

namespace json = boost::json;

class Reader {
  public:
    Reader(const json::value& config, std::string_view where)
        : config_(config, where), where_(where) {}

    StatedConfig read() {
        const auto type = config_.string("model_type");
        if (!type) fail("required key 'model_type' is missing");
        const Architecture& row = find_model_type(*type, where_);
        refuse_unsupported();
        StatedConfig stated;
        stated.where = where_;
        stated.architecture = row.name;
        stated.name = config_.string("_name_or_path").value_or("");
        stated.n_layers = number("num_hidden_layers");
        stated.dim = number("hidden_size");
        stated.max_context = number("max_position_embeddings");
        stated.n_heads = per_layer("num_attention_heads");
        stated.n_kv_heads = per_layer("num_key_value_heads");
        stated.hidden_dim = per_layer("intermediate_size");
        stated.key_length = number("head_dim");
        stated.value_length = {"head_dim", std::nullopt};
        stated.rope_dim = {"rotary dimensions", std::nullopt};
        stated.vocab_size = number("vocab_size");
        stated.norm_eps_key = "rms_norm_eps";
        stated.norm_eps = config_.number("rms_norm_eps");
        stated.rope_theta_key = "rope_theta";
        stated.rope_theta = config_.number("rope_theta");
        if (const json::value* rope = config_.find("rope_parameters")) {
            const auto theta = JsonObject(*rope, where_).number("rope_theta");
            if (theta) stated.rope_theta = theta;
        }
        // Only GGUF converters reorder q and k; the published checkpoints rotate halves.
        stated.rope = RopeKind::half_split;
        stated.tied_head = config_.boolean("tie_word_embeddings").value_or(false);
        stated.qkv_bias = row.qkv_bias;
        stated.qk_norm = row.qk_norm;
        return stated;
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", where_, message));
    }

    StatedNumber number(const char* key) const { return {key, config_.unsigned_value(key)}; }

    StatedPerLayer per_layer(const char* key) const {
        const auto value = config_.unsigned_value(key);
        return {key, value ? std::vector{*value} : std::vector<std::uint64_t>{}};
    }

    /// Fields that change the forward pass in ways that no row of the architecture table has yet.
    void refuse_unsupported() const {
        const auto refuse = [&](const char* key, const std::string& value) {
            fail(fmt::format("'{}' is {}, which is not supported", key, value));
        };
        const auto activation = config_.string("hidden_act").value_or("silu");
        if (activation != "silu") refuse("hidden_act", std::string(activation));
        for (const char* key : {"rope_scaling", "rope_parameters"}) {
            const json::value* scaling = config_.find(key);
            if (scaling == nullptr) continue;
            const JsonObject object(*scaling, where_);
            const auto legacy = object.string("type").value_or("default");
            const auto type = object.string("rope_type").value_or(legacy);
            if (type != "default") refuse(key, json::serialize(*scaling));
        }
        if (config_.boolean("use_sliding_window").value_or(false)) {
            refuse("use_sliding_window", "true");
        }
        const double rotated = config_.number("partial_rotary_factor").value_or(1.0);
        if (rotated != 1.0) refuse("partial_rotary_factor", fmt::format("{}", rotated));
    }

    JsonObject config_;
    std::string where_;
};

}  // namespace

ModelConfig safetensors_config(const json::value& config, std::string_view where,
                               bool has_query_bias, std::uint64_t n_embeddings) {
    StatedConfig stated = Reader(config, where).read();
    stated.qkv_bias = stated.qkv_bias || has_query_bias;
    if (n_embeddings > 0) stated.n_embeddings = n_embeddings;
    return check_config(stated);
}

}  // namespace skein::model
