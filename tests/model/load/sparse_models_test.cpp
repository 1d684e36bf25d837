// What sparse models and models with experts may state, and what of it is refused: metadata and
// config.json of the fixtures with one thing changed.
#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "model/load/gguf_model.h"
#include "model/load/json_text.h"
#include "model/load/safetensors_model.h"
#include "model/load/weights.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"

namespace json = boost::json;
using namespace skein::model;
using namespace skein::test;

namespace {

const std::string kFixtures = SKEIN_TEST_DATA "/fixtures/";

/// The m3-tiny GGUF with one text replaced by another of the same length, everywhere.
std::string renamed(const std::string& from, const std::string& to) {
    REQUIRE(from.size() == to.size());
    std::string bytes = read_file(kFixtures + "m3-tiny/model-q8_0.gguf");
    std::size_t n = 0;
    for (auto at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + 1)) {
        bytes.replace(at, from.size(), to);
        ++n;
    }
    REQUIRE(n > 0);
    return bytes;
}

/// The same with the u32 value of one key changed.
std::string with_u32(const std::string& key, std::uint32_t value) {
    std::string bytes = read_file(kFixtures + "m3-tiny/model-q8_0.gguf");
    const auto at = bytes.find(key);
    REQUIRE(at != std::string::npos);
    std::memcpy(bytes.data() + at + key.size() + 4, &value, sizeof value);
    return bytes;
}

struct Loaded {
    TemporaryFolder folder;
    std::unique_ptr<ModelFile> file;
    explicit Loaded(const std::string& gguf) {
        write_file(folder / "m.gguf", gguf);
        file = open_model_file(folder / "m.gguf");
    }
};

std::string gguf_refusal(const std::string& gguf) {
    return error_text([&] {
        const Loaded loaded(gguf);
        bind_weights(*loaded.file, loaded.file->config());
    });
}

json::value config_of(const std::string& folder) {
    return parse_json(read_file(kFixtures + folder + "/config.json"), "config.json");
}

/// The refusal of m3-tiny's config.json after a change of its text part.
template <typename Change>
std::string m3_refusal(Change change) {
    json::value config = config_of("m3-tiny");
    change(config.at("text_config").as_object());
    return error_text([&] { safetensors_config(config, "config.json", false, 0); });
}

json::object& sparse_of(json::object& text) {
    return text.at("sparse_attention_config").as_object();
}

}  // namespace

TEST_SUITE("model/load/sparse models") {
    TEST_CASE("a GGUF without index tensors is refused with what to do about it") {
        const std::string text = gguf_refusal(renamed("indexer.q_proj", "removed.q_proj"));
        CHECK(contains(text, "needs tensor 'blk.2.indexer.q_proj.weight' of the index branch"));
        CHECK(contains(text, "converted for dense attention only"));
        CHECK(contains(text, "or ask for the dense approximation"));
        CHECK_FALSE(contains(text, "corrupt"));
        // Keys of the index branch may be missing too, in files of the dense-only converter.
        CHECK(contains(gguf_refusal(renamed("minimax-m3.attention.indexer.top_k",
                                            "minimax-m3.attention.xxxxxxx.top_k")),
                       "'minimax-m3.attention.indexer.top_k' is missing"));
    }

    TEST_CASE("the dense approximation must be asked for, and the config and the notes say it") {
        const Loaded loaded(renamed("blk.2.indexer.q_proj", "blk.2.removed.q_proj"));
        CHECK_FALSE(error_text([&] { loaded.file->config(); }).empty());
        const ModelConfig config = loaded.file->config({.dense_approximation = true});
        CHECK(config.dense_approximation);
        for (const LayerConfig& layer : config.layers) {
            CHECK(layer.attention == AttentionKind::dense);
        }
        CHECK(config.layers[2].mlp == MlpKind::moe);

        const auto whole = open_model_file(kFixtures + "m3-tiny");
        const Weights w = bind_weights(*whole, whole->config({.dense_approximation = true}));
        CHECK(w.layers[4].index_wq == nullptr);
        CHECK(contains(w.notes.back(), "dense approximation: every layer attends to all tokens"));
        // Models that were trained densely are what they are.
        const auto dense = open_model_file(kFixtures + "qwen3-tiny");
        CHECK_FALSE(dense->config({.dense_approximation = true}).dense_approximation);
    }

    TEST_CASE("early names of index tensors are read, with a note") {
        // Same length, so that the file stays valid: "indexer.q_proj" became "index_q_proj".
        std::string bytes = read_file(kFixtures + "m3-tiny/model-q8_0.gguf");
        for (const char* part : {"q_proj", "k_proj", "q_norm", "k_norm"}) {
            const std::string now = std::string("indexer.") + part + ".weight";
            const std::string then = std::string("index_") + part + ".weight";
            for (auto at = bytes.find(now); at != std::string::npos; at = bytes.find(now, at)) {
                // The length before "blk.N." shrinks by two; two bytes of padding follow the table.
                const auto name = bytes.rfind("blk.", at);
                std::uint64_t length = 0;
                std::memcpy(&length, bytes.data() + name - 8, sizeof length);
                length -= 2;
                std::memcpy(bytes.data() + name - 8, &length, sizeof length);
                bytes.replace(at, now.size(), then);
            }
        }
        // Twelve names lost 24 bytes before the data; they go back into a metadata text.
        const std::string name = "m3 tiny random";
        const auto at = bytes.find(name);
        const std::uint64_t longer = name.size() + 24;
        std::memcpy(bytes.data() + at - 8, &longer, sizeof longer);
        bytes.insert(at + name.size(), 24, '!');
        const Loaded loaded(bytes);
        const ModelConfig config = loaded.file->config();
        CHECK(config.msa.top_k == 4);
        const Weights w = bind_weights(*loaded.file, config);
        CHECK(w.layers[2].index_wq->name == "blk.2.index_q_proj.weight");
        REQUIRE(w.notes.size() == 1);
        CHECK(contains(w.notes[0], "names from before June 2026"));
    }

    TEST_CASE("GGUF keys of sparse attention and experts are checked by name") {
        const auto refused = [](const char* key, std::uint32_t value, const char* part) {
            CAPTURE(key);
            const std::string text = gguf_refusal(with_u32(key, value));
            CAPTURE(text);
            CHECK(contains(text, part));
        };
        refused("minimax-m3.attention.indexer.head_count", 4, "is 4, expected one index head");
        refused("minimax-m3.attention.indexer.key_length", 8, "less than the 16 rotated channels");
        refused("minimax-m3.attention.indexer.key_length", 64, "'blk.2.indexer.q_proj.weight' is");
        refused("minimax-m3.attention.indexer.block_size", 24, "expected a power of two from 8");
        refused("minimax-m3.attention.indexer.block_size", 256, "to 128");
        refused("minimax-m3.attention.indexer.top_k", 0, "top_k' is 0, expected 1 to");
        refused("minimax-m3.attention.indexer.local_blocks", 5, "less than the 0 first and 5 last");
        refused("minimax-m3.expert_count", 9, "is 8 rows of 96, the metadata says 9 rows");
        refused("minimax-m3.expert_count", 1, "more than the 1 experts");
        refused("minimax-m3.expert_used_count", 9, "is 9, more than the 8 experts");
        refused("minimax-m3.expert_feed_forward_length", 64, "'blk.2.ffn_gate_shexp.weight' is 32");
        refused("minimax-m3.expert_gating_func", 3, "only 1 (softmax) and 2 (sigmoid)");
        refused("minimax-m3.leading_dense_block_count", 6, "gives layer 2 dense attention");
        refused("minimax-m3.leading_dense_block_count", 3,
                "gives layer 2 dense attention, but the file has 'blk.2.indexer.q_proj.weight'");
        refused("minimax-m3.leading_dense_block_count", 1, "needs tensor 'blk.1.indexer.q_proj");
        refused("minimax-m3.rope.dimension_count", 34, "expected an even number up to");
        CHECK(contains(gguf_refusal(renamed("expert_weights_scale", "expert_weights_xxxxx")),
                       "'minimax-m3.expert_weights_scale' is missing"));
    }

    TEST_CASE("config.json fields of sparse attention and experts are checked by name") {
        const auto refused = [](auto change, const char* part) {
            const std::string text = m3_refusal(change);
            CAPTURE(text);
            CHECK(contains(text, part));
        };
        using O = json::object;
        CHECK(m3_refusal([](O&) {}).empty());
        refused([](O& t) { t.erase("sparse_attention_config"); }, "must be asked for");
        refused([](O& t) { sparse_of(t).erase("sparse_attention_freq"); },
                "'sparse_attention_freq' is missing");
        refused(
            [](O& t) {
                sparse_of(t)["sparse_attention_freq"] = {0, 0};
            },
            "'sparse_attention_freq' has 2 entries for 5 layers");
        refused(
            [](O& t) {
                sparse_of(t)["sparse_attention_freq"] = {0, 0, 1, 1, 2};
            },
            "holds 2, expected 0 or 1");
        refused([](O& t) { sparse_of(t)["sparse_score_type"] = "mean"; },
                "'sparse_score_type' is mean");
        refused(
            [](O& t) {
                sparse_of(t)["sparse_disable_index_value"] = {0, 0, 1, 0, 1};
            },
            "'sparse_disable_index_value' is 0 for layer 3");
        refused([](O& t) { sparse_of(t)["sparse_num_index_heads"] = 4; }, "one index head for");
        refused([](O& t) { sparse_of(t)["sparse_block_size"] = 100; }, "a power of two");
        refused([](O& t) { sparse_of(t)["sparse_init_block"] = 4; }, "4 first and 1 last blocks");
        refused([](O& t) { t.erase("moe_layer_freq"); }, "neither 'moe_layer_freq' nor");
        refused([](O& t) { t.erase("routed_scaling_factor"); }, "'routed_scaling_factor' is mis");
        refused([](O& t) { t["routed_scaling_factor"] = 0; }, "expected a positive number");
        refused([](O& t) { t["scoring_func"] = "tanh"; }, "'scoring_func' is tanh");
        refused([](O& t) { t["attention_output_gate"] = true; }, "'attention_output_gate' is true");
        refused([](O& t) { t["qk_norm_type"] = "per_layer"; }, "'qk_norm_type' is per_layer");
        refused([](O& t) { t["use_qk_norm"] = false; }, "'use_qk_norm' is false");
        refused([](O& t) { t["hidden_act"] = "gelu"; }, "'hidden_act' is gelu");
        refused([](O& t) { t["n_shared_experts"] = 2; }, "'n_shared_experts' is 2");
        refused([](O& t) { t["rotary_dim"] = 32; }, "'partial_rotary_factor' 0.5 of a head of 32");
        refused([](O& t) { t["partial_rotary_factor"] = 0.3; }, "not a whole number of channels");
        refused([](O& t) { t["swiglu_limit"] = -1; }, "limit of the activation is -1");
        refused(
            [](O& t) {
                t["rope_scaling"] = {{"type", "yarn"}, {"factor", 2}};
            },
            "'rope_scaling' is {");
    }

    TEST_CASE("a config may put first blocks in, other norms and other constants") {
        json::value config = config_of("m3-tiny");
        json::object& text = config.at("text_config").as_object();
        sparse_of(text)["sparse_init_block"] = 1;
        text["use_gemma_norm"] = false;
        text["swiglu_limit"] = 6.0;
        const ModelConfig read = safetensors_config(config, "config.json", false, 0);
        CHECK(read.msa.init_blocks == 1);
        CHECK_FALSE(read.zero_centred_norms);
        CHECK(read.activation_limit == 6.0F);
        sparse_of(text)["use_sparse_attention"] = false;
        const ModelConfig off = safetensors_config(config, "config.json", false, 0);
        for (const LayerConfig& layer : off.layers) CHECK(layer.attention == AttentionKind::dense);
        CHECK_FALSE(off.dense_approximation);
    }

    TEST_CASE("Qwen3 models with experts choose by softmax and say which layers have them") {
        json::value config = config_of("qwen3-tiny");
        json::object& c = config.as_object();
        c["model_type"] = "qwen3_moe";
        c["num_experts"] = 8;
        c["num_experts_per_tok"] = 2;
        c["moe_intermediate_size"] = 48;
        c["mlp_only_layers"] = json::array{1};
        const auto read = [&] { return safetensors_config(config, "config.json", false, 0); };
        const ModelConfig first = read();
        CHECK(first.architecture == "qwen3moe");
        CHECK(first.moe.router == RouterKind::softmax);
        CHECK_FALSE(first.moe.renormalise);
        CHECK_FALSE(first.moe.selection_bias);
        CHECK(first.moe.expert_dim == 48);
        CHECK(first.layers[0].mlp == MlpKind::moe);
        CHECK(first.layers[0].hidden_dim == 0);
        CHECK(first.layers[1].mlp == MlpKind::dense);
        CHECK(first.layers[1].hidden_dim == 160);
        c["norm_topk_prob"] = true;
        c["decoder_sparse_step"] = 3;
        CHECK(read().moe.renormalise);
        CHECK(read().layers[0].mlp == MlpKind::dense);
        CHECK(read().layers[2].mlp == MlpKind::moe);
        c["decoder_sparse_step"] = 0;
        CHECK(contains(error_text(read), "'decoder_sparse_step' is 0"));
        c["decoder_sparse_step"] = 1;
        c["mlp_only_layers"] = json::array{-1};
        CHECK(contains(error_text(read), "'mlp_only_layers' holds -1"));
    }

    TEST_CASE("vision tensors are left out with a note, others without a place are refused") {
        const TemporaryFolder folder;
        write_file(folder / "config.json", read_file(kFixtures + "m3-tiny/config.json"));
        const std::string whole = read_file(kFixtures + "m3-tiny/model.safetensors");
        std::uint64_t n = 0;
        std::memcpy(&n, whole.data(), sizeof n);
        const auto with = [&](const char* name) {
            std::string header = whole.substr(8, static_cast<std::size_t>(n));
            while (header.back() != '}') header.pop_back();
            const std::size_t data = whole.size() - 8 - static_cast<std::size_t>(n);
            header.back() = ',';
            header += "\"" + std::string(name) + R"(":{"dtype":"F32","shape":[2,1,2,1,1],)" +
                      R"("data_offsets":[)" + std::to_string(data) + "," +
                      std::to_string(data + 16) + "]}}";
            const std::uint64_t length = header.size();
            std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
            bytes += header + whole.substr(8 + static_cast<std::size_t>(n)) + std::string(16, '\0');
            write_file(folder / "model.safetensors", bytes);
            const auto file = open_model_file(folder.path());
            return bind_weights(*file, file->config()).notes;
        };
        for (const char* name :
             {"vision_tower.vision_model.embeddings.patch_embedding.weight",
              "multi_modal_projector.linear_1.weight", "patch_merge_mlp.linear_2.weight",
              "model.vision_tower.embeddings.proj.weight"}) {
            CAPTURE(name);
            const std::vector<std::string> notes = with(name);
            REQUIRE(notes.size() == 2);
            CHECK(contains(notes[0] + notes[1], "1 tensor ignored: images are not read"));
        }
        CHECK(contains(error_text([&] { with("language_model.model.layers.0.adapter.weight"); }),
                       "has no place for tensor 'language_model.model.layers.0.adapter.weight'"));
    }
}
