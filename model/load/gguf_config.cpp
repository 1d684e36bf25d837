// GGUF metadata keys as a StatedConfig.  Source: GGUF specification, standardised key names; the
// keys of expert and sparse attention layers as llama.cpp's converters write them.
#include <fmt/format.h>

#include <algorithm>

#include "model/error.h"
#include "model/load/architecture.h"
#include "model/load/gguf_model.h"
#include "model/load/stated_config.h"

namespace skein::model {
namespace {

class Reader {
  public:
    Reader(const GgufIndex& index, const TensorLookup& find, const Architecture& row)
        : index_(index), find_(find), row_(row), prefix_(row.name) {}

    StatedConfig read(const ConfigOptions& options) {
        stated_.where = index_.where;
        stated_.architecture = prefix_;
        stated_.name = index_.string_value("general.name").value_or("");
        stated_.n_layers = number(".block_count");
        stated_.dim = number(".embedding_length");
        stated_.max_context = number(".context_length");
        stated_.n_heads = per_layer(".attention.head_count");
        stated_.n_kv_heads = per_layer(".attention.head_count_kv");
        stated_.hidden_dim = per_layer(".feed_forward_length");
        stated_.key_length = number(".attention.key_length");
        stated_.value_length = number(".attention.value_length");
        stated_.rope_dim = number(".rope.dimension_count");
        stated_.vocab_size = number(".vocab_size");
        stated_.norm_eps_key = prefix_ + ".attention.layer_norm_rms_epsilon";
        stated_.norm_eps = index_.float_value(stated_.norm_eps_key);
        stated_.rope_theta_key = prefix_ + ".rope.freq_base";
        stated_.rope_theta = index_.float_value(stated_.rope_theta_key);
        stated_.rope = row_.gguf_rope;
        stated_.qk_norm = row_.qk_norm;
        stated_.activation = row_.activation;
        stated_.dense_approximation = options.dense_approximation && row_.sparse_attention;
        refuse_unsupported();
        read_experts();
        read_sparse_attention();
        read_tensors();
        return std::move(stated_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", index_.where, message));
    }
    StatedNumber number(const char* suffix) const {
        const std::string key = prefix_ + suffix;
        return {key, index_.unsigned_value(key)};
    }
    StatedPerLayer per_layer(const char* suffix) const {
        const std::string key = prefix_ + suffix;
        return {key, index_.unsigned_values(key)};
    }

    /// Features that change the forward pass and that this build does not have.
    void refuse_unsupported() const {
        const auto refuse = [&](const std::string& key, const std::string& value) {
            fail(fmt::format("'{}' is {}, which is not supported for architecture '{}'", key, value,
                             prefix_));
        };
        const StatedNumber experts = number(".expert_count");
        if (!row_.experts && experts.value.value_or(0) > 0) {
            refuse(experts.key, fmt::format("{}", *experts.value));
        }
        const StatedNumber window = number(".attention.sliding_window");
        const std::uint64_t context = stated_.max_context.value.value_or(0);
        if (window.value.value_or(0) > 0 && (context == 0 || *window.value < context)) {
            refuse(window.key, fmt::format("{}", *window.value));
        }
        const std::string scaling = prefix_ + ".rope.scaling.type";
        const std::string factor = prefix_ + ".rope.scaling.factor";
        if (const auto type = index_.string_value(scaling); type && *type != "none") {
            if (index_.float_value(factor).value_or(0.0) != 1.0) {
                refuse(scaling, std::string(*type));
            }
        }
        const std::string linear = prefix_ + ".rope.scale_linear";
        if (const auto scale = index_.float_value(linear); scale.value_or(1.0) != 1.0) {
            refuse(linear, fmt::format("{}", *scale));
        }
    }

    void read_experts() {
        if (!row_.experts) return;
        const StatedNumber leading = number(".leading_dense_block_count");
        stated_.experts = {leading.key, {}, leading.value.value_or(0)};
        StatedMoe& moe = stated_.moe;
        moe.n_experts = number(".expert_count");
        moe.n_used = number(".expert_used_count");
        moe.expert_dim = number(".expert_feed_forward_length");
        moe.shared_dim = shared_width();
        moe.scale_key = prefix_ + ".expert_weights_scale";
        moe.scale = index_.float_value(moe.scale_key);
        moe.router = router();
        moe.selection_bias = row_.selection_bias;
        // No converter of these families writes false; qwen3moe and minimax-m2 have no such key.
        moe.renormalise = index_.bool_value(prefix_ + ".expert_weights_norm").value_or(true);
        if (row_.sparse_attention && !moe.scale) {
            fail(fmt::format("required key '{}' is missing", moe.scale_key));
        }
    }

    /// Shared experts are stored as one MLP of their joint width.
    StatedNumber shared_width() const {
        const StatedNumber count = number(".expert_shared_count");
        StatedNumber width = number(".expert_shared_feed_forward_length");
        if (count.value.value_or(0) == 0) return {width.key, std::nullopt};
        if (width.value) return width;
        const StatedNumber expert = number(".expert_feed_forward_length");
        std::uint64_t product = 0;
        if (__builtin_mul_overflow(*count.value, expert.value.value_or(0), &product)) {
            fail(fmt::format("'{}' is {}", count.key, *count.value));
        }
        return {count.key + " x " + expert.key, product};
    }

    RouterKind router() const {
        const StatedNumber gating = number(".expert_gating_func");
        if (!gating.value) return row_.router;
        if (*gating.value == 1) return RouterKind::softmax;
        if (*gating.value == 2) return RouterKind::sigmoid;
        fail(fmt::format("'{}' is {}, only 1 (softmax) and 2 (sigmoid) are supported", gating.key,
                         *gating.value));
    }

    void read_sparse_attention() {
        if (!row_.sparse_attention) return;
        const std::string key = prefix_ + ".attention.indexer.layers";
        stated_.sparse_attention = {stated_.experts.key, {}, stated_.experts.from};
        if (index_.find(key) != nullptr) {
            stated_.sparse_attention = {key, index_.bool_values(key), std::nullopt};
        }
        if (!stated_.dense_approximation) check_index_tensors();
        StatedMsa& msa = stated_.msa;
        msa.index_heads = number(".attention.indexer.head_count");
        msa.index_dim = number(".attention.indexer.key_length");
        msa.block_tokens = number(".attention.indexer.block_size");
        msa.top_k = number(".attention.indexer.top_k");
        msa.init_blocks = number(".attention.indexer.init_blocks");
        msa.local_blocks = number(".attention.indexer.local_blocks");
        complete_early_file(msa);
    }

    /// Files converted while llama.cpp's names were not settled have no keys for the index branch;
    /// the one model of that time is the MiniMax-M3 release (blocks of 128 tokens, 16 chosen).
    void complete_early_file(StatedMsa& msa) const {
        const Tensor* key_projection = nullptr;
        for (std::size_t i = 0; i < std::min(stated_.n_layers.value.value_or(0), kMaxLayers); ++i) {
            key_projection = find_(gguf_names().layer_tensor(i, "index_k_proj.weight"));
            if (key_projection != nullptr) break;
        }
        if (key_projection == nullptr) return;
        const auto complete = [](StatedNumber& number, std::uint64_t value) {
            if (!number.value) number.value = value;
        };
        complete(msa.index_dim, static_cast<std::uint64_t>(key_projection->n_rows()));
        if (!stated_.n_kv_heads.values.empty()) {
            complete(msa.index_heads, stated_.n_kv_heads.values.back());
        }
        complete(msa.block_tokens, 128);
        complete(msa.top_k, 16);
    }

    /// Each layer that the metadata calls sparse has index tensors and no other layer has.
    void check_index_tensors() const {
        const LayerTensorName* index = nullptr;
        for (const LayerTensorName& row : layer_tensor_names()) {
            if (row.place == &LayerWeights::index_wq) index = &row;
        }
        const StatedKinds& kinds = stated_.sparse_attention;
        const NamingScheme names = gguf_names();
        const std::uint64_t n = std::min(stated_.n_layers.value.value_or(0), kMaxLayers);
        for (std::size_t i = 0; i < n; ++i) {
            const bool wanted = kinds.flags.empty() ? i >= kinds.from.value_or(0)
                                                    : i < kinds.flags.size() && kinds.flags[i];
            const std::string name = names.layer_tensor(i, index->gguf[0]);
            const bool present =
                find_(name) != nullptr || find_(names.layer_tensor(i, index->gguf[1])) != nullptr;
            if (wanted && !present) fail(missing_index_text(prefix_, name));
            if (!wanted && present) {
                fail(
                    fmt::format("'{}' gives layer {} dense attention, but the file has '{}'; "
                                "'{}.attention.indexer.layers' can say which layers are sparse",
                                kinds.key, i, name, prefix_));
            }
        }
    }

    void read_tensors() {
        if (const GgufPair* tokens = index_.find("tokenizer.ggml.tokens")) {
            const auto* array = std::get_if<GgufArray>(&tokens->value);
            if (array != nullptr) stated_.n_tokens = array->count;
        }
        const NamingScheme names = gguf_names();
        if (const Tensor* embedding = find_(names.embedding)) {
            stated_.n_embeddings = static_cast<std::uint64_t>(embedding->n_rows());
        }
        stated_.tied_head = find_(names.output) == nullptr;
        stated_.qkv_bias = row_.qkv_bias || find_(names.layer_tensor(0, "attn_q.bias")) != nullptr;
    }

    const GgufIndex& index_;
    const TensorLookup& find_;
    const Architecture& row_;
    std::string prefix_;
    StatedConfig stated_;
};

}  // namespace

ModelConfig gguf_config(const GgufIndex& index, const TensorLookup& find,
                        const ConfigOptions& options) {
    const auto name = index.string_value("general.architecture");
    if (!name) {
        throw Error(fmt::format("{}: required key 'general.architecture' is missing", index.where));
    }
    const Architecture& row = find_architecture(*name, index.where);
    return check_config(Reader(index, find, row).read(options));
}

}  // namespace skein::model
