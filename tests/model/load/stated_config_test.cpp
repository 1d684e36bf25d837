// From metadata to a checked ModelConfig, through GGUF keys.
#include "model/load/stated_config.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/load/architecture.h"
#include "model/load/gguf_model.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"
#include "support/tiny_llama.h"

using namespace skein::model;
using namespace skein::test;

namespace {

ModelConfig config_of(const GgufWriter& writer) {
    const std::string bytes = writer.bytes();
    const GgufIndex index = parse_gguf(std::as_bytes(std::span(bytes)), "test.gguf");
    return gguf_config(index, [&](std::string_view name) -> const Tensor* {
        for (const Tensor& t : index.tensors) {
            if (t.name == name) return &t;
        }
        return nullptr;
    });
}

std::string refusal(const GgufWriter& writer) {
    return error_text([&] { config_of(writer); });
}

/// A good config to break one field of.
StatedConfig good() {
    StatedConfig stated;
    stated.where = "file";
    stated.architecture = "llama";
    stated.n_layers = {"layers", 3};
    stated.dim = {"dim", 96};
    stated.max_context = {"context", 2048};
    stated.n_heads = {"heads", {6}};
    stated.n_kv_heads = {"kv", {2}};
    stated.hidden_dim = {"hidden", {160}};
    stated.key_length = {"key_length", {}};
    stated.value_length = {"value_length", {}};
    stated.rope_dim = {"rope_dim", {}};
    stated.vocab_size = {"vocab", 512};
    stated.norm_eps_key = "eps";
    stated.norm_eps = 1e-5;
    stated.rope_theta_key = "theta";
    return stated;
}

template <typename Change>
std::string refusal_after(Change change) {
    return error_text([&] {
        StatedConfig stated = good();
        change(stated);
        check_config(stated);
    });
}

}  // namespace

TEST_SUITE("model/load/stated_config") {
    TEST_CASE("absent optional values follow from the others") {
        const ModelConfig config = check_config(good());
        CHECK(config.head_dim == 16);
        CHECK(config.rope_dim == 16);
        CHECK(config.rope_theta == 10000.0);
        CHECK(config.n_layers() == 3);
        CHECK(config.layers[2].n_kv_heads == 2);
        CHECK(config.layers[2].hidden_dim == 160);

        StatedConfig no_kv = good();
        no_kv.n_kv_heads.values.clear();
        CHECK(check_config(no_kv).n_kv_heads == 6);
        StatedConfig no_vocab = good();
        no_vocab.vocab_size.value.reset();
        no_vocab.n_embeddings = 77;
        CHECK(check_config(no_vocab).vocab_size == 77);
        StatedConfig wide_heads = good();
        wide_heads.key_length.value = 32;
        CHECK(check_config(wide_heads).head_dim == 32);
    }

    TEST_CASE("values may be given a layer") {
        StatedConfig stated = good();
        stated.hidden_dim.values = {160, 320, 64};
        stated.n_kv_heads.values = {2, 3, 6};
        const ModelConfig config = check_config(stated);
        CHECK(config.layers[1].hidden_dim == 320);
        CHECK(config.layers[2].n_kv_heads == 6);
    }

    TEST_CASE("each contradiction is refused with the key that causes it") {
        using S = StatedConfig;
        const auto refused = [](auto change, const char* part) {
            const std::string text = refusal_after(change);
            CAPTURE(text);
            CHECK(contains(text, part));
            CHECK_FALSE(contains(text, "truncated"));
            CHECK_FALSE(contains(text, "corrupt"));
        };
        refused([](S& s) { s.dim.value.reset(); }, "required key 'dim' is missing");
        refused([](S& s) { s.n_heads.values.clear(); }, "required key 'heads' is missing");
        refused([](S& s) { s.n_heads.values = {0}; }, "'heads' is 0, expected 1 to");
        refused([](S& s) { s.n_heads.values = s.n_kv_heads.values = {7}; },
                "'dim' 96 is not a multiple of 'heads' 7");
        refused([](S& s) { s.n_kv_heads.values = {4}; }, "6 query heads are not a multiple of 4");
        refused([](S& s) { s.hidden_dim.values = {1, 2}; }, "'hidden' has 2 entries for 3 layers");
        refused([](S& s) { s.n_heads.values = {6, 6, 3}; }, "'heads' differs between layers");
        refused([](S& s) { s.n_layers.value = 1ULL << 40; }, "'layers' is 1099511627776");
        refused([](S& s) { s.max_context.value = 0; }, "'context' is 0");
        refused([](S& s) { s.rope_dim.value = 7; }, "'rope_dim' is 7, expected an even number");
        refused([](S& s) { s.rope_dim.value = 18; }, "'rope_dim' is 18");
        refused([](S& s) { s.value_length.value = 32; }, "'value_length' 32 differs");
        refused([](S& s) { s.norm_eps.reset(); }, "required key 'eps' is missing");
        refused([](S& s) { s.norm_eps = 0.0; }, "'eps' is 0");
        refused([](S& s) { s.rope_theta = -1.0; }, "'theta' is -1");
        refused([](S& s) { s.n_tokens = 511; }, "size is 512 but there are 511 tokens");
        refused([](S& s) { s.n_embeddings = 513; }, "512 but there are 513 rows");
        refused([](S& s) { s.vocab_size.value.reset(); }, "vocabulary size is unknown");
    }

    TEST_CASE("every dense architecture of the table reads its own keys and flags") {
        for (const Architecture& row : architectures()) {
            if (row.experts) continue;
            TinyShape shape;
            shape.architecture = row.name;
            const ModelConfig config = config_of(tiny_llama(shape));
            CHECK(config.architecture == row.name);
            CHECK(config.rope == row.gguf_rope);
            CHECK(config.qkv_bias == row.qkv_bias);
            CHECK(config.qk_norm == row.qk_norm);
            CHECK(config.vocab_size == static_cast<int>(kTinyVocabulary));
        }
    }

    TEST_CASE("counts may be u32, u64, signed or arrays in GGUF metadata") {
        const std::vector<std::uint32_t> per_layer{96, 128};
        GgufWriter writer;
        writer.string("general.architecture", "llama")
            .u64("llama.block_count", 2)
            .u64("llama.context_length", 128)
            .i32("llama.embedding_length", 64)
            .u32s("llama.feed_forward_length", per_layer)
            .u32("llama.attention.head_count", 4)
            .u32("llama.vocab_size", 10)
            .f64("llama.attention.layer_norm_rms_epsilon", 1e-6);
        const ModelConfig config = config_of(writer);
        CHECK(config.layers[1].hidden_dim == 128);
        CHECK(config.norm_eps == 1e-6F);
        CHECK(contains(refusal(writer.i32("llama.attention.head_count_kv", -2)),
                       "key 'llama.attention.head_count_kv' must be a non-negative integer"));
    }

    // [complete file reported as incomplete]
    TEST_CASE("an unknown architecture is named with the known ones, not called broken") {
        TinyShape shape;
        shape.architecture = "zeta-moe";
        const std::string text = refusal(tiny_llama(shape));
        CHECK(contains(text, "unsupported architecture 'zeta-moe'; this build knows llama, qwen2"));
        CHECK_FALSE(contains(text, "truncated"));
        CHECK_FALSE(contains(text, "corrupt"));
        CHECK(contains(refusal(GgufWriter()), "'general.architecture' is missing"));
    }

    TEST_CASE("features that would change the results are refused, not ignored") {
        const auto with = [](auto add) {
            GgufWriter writer = tiny_llama();
            add(writer);
            return refusal(writer);
        };
        CHECK(contains(with([](GgufWriter& w) { w.u32("llama.expert_count", 8); }),
                       "'llama.expert_count' is 8, which is not supported"));
        CHECK(contains(with([](GgufWriter& w) { w.string("llama.rope.scaling.type", "yarn"); }),
                       "'llama.rope.scaling.type' is yarn"));
        CHECK(contains(with([](GgufWriter& w) { w.u32("llama.attention.sliding_window", 64); }),
                       "'llama.attention.sliding_window' is 64"));
        CHECK(with([](GgufWriter& w) { w.string("llama.rope.scaling.type", "none"); }).empty());
        CHECK(with([](GgufWriter& w) { w.u32("llama.attention.sliding_window", 4096); }).empty());
    }
}
