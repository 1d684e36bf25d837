// GGUF metadata keys as a StatedConfig.  Source: GGUF specification, standardised key names.
#include <fmt/format.h>

#include "model/error.h"
#include "model/load/architecture.h"
#include "model/load/gguf_model.h"
#include "model/load/stated_config.h"

namespace skein::model {
namespace {

/// Features that change the forward pass and that no row of the architecture table has yet.
void refuse_unsupported(const GgufIndex& index, const std::string& prefix,
                        std::optional<std::uint64_t> context) {
    const auto refuse = [&](const std::string& key, const std::string& value) {
        throw Error(fmt::format("{}: '{}' is {}, which is not supported for architecture '{}'",
                                index.where, key, value, prefix));
    };
    const std::string experts = prefix + ".expert_count";
    if (const auto n = index.unsigned_value(experts); n.value_or(0) > 0) {
        refuse(experts, fmt::format("{}", *n));
    }
    const std::string window = prefix + ".attention.sliding_window";
    if (index.find(window) != nullptr) {
        const auto n = index.unsigned_value(window).value_or(0);
        if (n > 0 && (!context || n < *context)) refuse(window, fmt::format("{}", n));
    }
    const std::string scaling = prefix + ".rope.scaling.type";
    const std::string factor = prefix + ".rope.scaling.factor";
    if (const auto type = index.string_value(scaling); type && *type != "none") {
        if (index.float_value(factor).value_or(0.0) != 1.0) refuse(scaling, std::string(*type));
    }
    const std::string linear = prefix + ".rope.scale_linear";
    if (const auto scale = index.float_value(linear); scale.value_or(1.0) != 1.0) {
        refuse(linear, fmt::format("{}", *scale));
    }
}

}  // namespace

ModelConfig gguf_config(const GgufIndex& index, const TensorLookup& find) {
    const auto name = index.string_value("general.architecture");
    if (!name) {
        throw Error(fmt::format("{}: required key 'general.architecture' is missing", index.where));
    }
    const Architecture& row = find_architecture(*name, index.where);
    const std::string prefix(row.name);
    const auto number = [&](const char* suffix) {
        const std::string key = prefix + suffix;
        return StatedNumber{key, index.unsigned_value(key)};
    };
    const auto per_layer = [&](const char* suffix) {
        const std::string key = prefix + suffix;
        return StatedPerLayer{key, index.unsigned_values(key)};
    };

    StatedConfig stated;
    stated.where = index.where;
    stated.architecture = prefix;
    stated.name = index.string_value("general.name").value_or("");
    stated.n_layers = number(".block_count");
    stated.dim = number(".embedding_length");
    stated.max_context = number(".context_length");
    stated.n_heads = per_layer(".attention.head_count");
    stated.n_kv_heads = per_layer(".attention.head_count_kv");
    stated.hidden_dim = per_layer(".feed_forward_length");
    stated.key_length = number(".attention.key_length");
    stated.value_length = number(".attention.value_length");
    stated.rope_dim = number(".rope.dimension_count");
    stated.vocab_size = number(".vocab_size");
    stated.norm_eps_key = prefix + ".attention.layer_norm_rms_epsilon";
    stated.norm_eps = index.float_value(stated.norm_eps_key);
    stated.rope_theta_key = prefix + ".rope.freq_base";
    stated.rope_theta = index.float_value(stated.rope_theta_key);
    refuse_unsupported(index, prefix, stated.max_context.value);

    if (const GgufPair* tokens = index.find("tokenizer.ggml.tokens")) {
        const auto* array = std::get_if<GgufArray>(&tokens->value);
        if (array != nullptr) stated.n_tokens = array->count;
    }
    if (const Tensor* embedding = find(kEmbeddingName[0])) {
        stated.n_embeddings = static_cast<std::uint64_t>(embedding->n_rows());
    }
    stated.rope = row.gguf_rope;
    stated.tied_head = find(kOutputName[0]) == nullptr;
    stated.qkv_bias = row.qkv_bias || find("blk.0.attn_q.bias") != nullptr;
    stated.qk_norm = row.qk_norm;
    return check_config(stated);
}

}  // namespace skein::model
