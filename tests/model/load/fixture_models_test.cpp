// Every fixture model binds, and its config says what the file was written with.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/load/model_file.h"
#include "model/load/quant.h"
#include "model/load/weights.h"
#include "support/model_error.h"

using namespace skein::model;
using namespace skein::test;

namespace {

struct Bound {
    std::unique_ptr<ModelFile> file;
    ModelConfig config;
    Weights weights;
};

Bound bind(const std::string& name) {
    Bound bound;
    bound.file = open_model_file(SKEIN_TEST_DATA "/fixtures/" + name);
    bound.config = bound.file->config();
    bound.weights = bind_weights(*bound.file, bound.config);
    return bound;
}

std::vector<float> decode(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.row_length() * tensor.n_rows()));
    dequantize(tensor.type, tensor.data, values);
    return values;
}

void check_shape(const Tensor* tensor, std::int64_t n_rows, std::int64_t row_length) {
    REQUIRE(tensor != nullptr);
    CAPTURE(tensor->name);
    CHECK(tensor->n_rows() == n_rows);
    CHECK(tensor->row_length() == row_length);
    CHECK(tensor->bytes == tensor->row_bytes() * static_cast<std::size_t>(n_rows));
}

std::string kinds(const ModelConfig& config) {
    std::string text;
    for (const LayerConfig& layer : config.layers) {
        text += layer.attention == AttentionKind::msa ? 'm' : 'd';
        text += layer.mlp == MlpKind::moe ? 'x' : 'd';
    }
    return text;
}

/// The same places hold the same values; `gguf` has the 1 of the norms added.
void check_same_values(const Bound& a, const Bound& b) {
    const auto same = [&](const Tensor* x, const Tensor* y, bool norm = false) {
        REQUIRE((x == nullptr) == (y == nullptr));
        if (x == nullptr) return;
        CAPTURE(x->name);
        std::vector<float> u = decode(*x);
        std::vector<float> v = decode(*y);
        if (norm && a.config.zero_centred_norms)
            for (float& w : u) w += 1.0F;
        if (norm && b.config.zero_centred_norms)
            for (float& w : v) w += 1.0F;
        CHECK(u == v);
    };
    same(a.weights.token_embedding, b.weights.token_embedding);
    same(a.weights.output, b.weights.output);
    same(a.weights.output_norm, b.weights.output_norm, true);
    REQUIRE(a.weights.layers.size() == b.weights.layers.size());
    using L = LayerWeights;
    for (std::size_t i = 0; i < a.weights.layers.size(); ++i) {
        CAPTURE(i);
        const L& x = a.weights.layers[i];
        const L& y = b.weights.layers[i];
        for (const auto place : {&L::attn_norm, &L::q_norm, &L::k_norm, &L::index_q_norm,
                                 &L::index_k_norm, &L::ffn_norm}) {
            same(x.*place, y.*place, true);
        }
        for (const auto place : {&L::wq, &L::wk, &L::wv, &L::wo, &L::index_wq, &L::index_wk,
                                 &L::w_gate, &L::w_up, &L::w_down, &L::router, &L::router_bias,
                                 &L::shared_gate, &L::shared_up, &L::shared_down}) {
            same(x.*place, y.*place);
        }
        for (const auto place : {&L::expert_gate, &L::expert_up, &L::expert_down}) {
            REQUIRE((x.*place).size() == (y.*place).size());
            for (std::size_t e = 0; e < (x.*place).size(); ++e) {
                same((x.*place)[e], (y.*place)[e]);
            }
        }
    }
}

void check_m3_layer(const Bound& m, std::size_t i) {
    const LayerWeights& w = m.weights.layers[i];
    const bool msa = m.config.layers[i].attention == AttentionKind::msa;
    const bool moe = m.config.layers[i].mlp == MlpKind::moe;
    check_shape(w.wq, 256, 96);
    check_shape(w.wk, 64, 96);
    check_shape(w.wo, 96, 256);
    check_shape(w.q_norm, 1, 32);
    check_shape(w.k_norm, 1, 32);
    CHECK((w.index_wq != nullptr) == msa);
    if (msa) {
        check_shape(w.index_wq, 64, 96);
        check_shape(w.index_wk, 32, 96);
        check_shape(w.index_q_norm, 1, 32);
        check_shape(w.index_k_norm, 1, 32);
    }
    CHECK((w.w_gate == nullptr) == moe);
    CHECK(w.expert_gate.size() == (moe ? 8 : 0));
    if (!moe) {
        check_shape(w.w_gate, 160, 96);
        check_shape(w.w_down, 96, 160);
        return;
    }
    check_shape(w.router, 8, 96);
    check_shape(w.router_bias, 1, 8);
    check_shape(w.shared_up, 32, 96);
    check_shape(w.shared_down, 96, 32);
    for (std::size_t e = 0; e < 8; ++e) {
        check_shape(w.expert_gate[e], 32, 96);
        check_shape(w.expert_up[e], 32, 96);
        check_shape(w.expert_down[e], 96, 32);
    }
}

}  // namespace

TEST_SUITE("model/load/fixtures") {
    TEST_CASE("MiniMax-M3 binds from GGUF and from every safetensors naming form") {
        for (const char* name :
             {"m3-tiny", "m3-tiny/hf-saved", "m3-tiny/model-f32.gguf", "m3-tiny/model-q8_0.gguf"}) {
            CAPTURE(name);
            const Bound m = bind(name);
            CHECK(m.config.architecture == "minimax-m3");
            CHECK(kinds(m.config) == "ddddmxmxmx");
            CHECK(m.config.zero_centred_norms == (m.file->format() == "safetensors"));
            CHECK(m.config.rope == RopeKind::half_split);
            CHECK(m.config.rope_dim == 16);
            CHECK(m.config.rope_theta == 5e6);
            CHECK(m.config.head_dim == 32);
            CHECK(m.config.norm_eps == 1e-6F);
            CHECK(m.config.qk_norm == QkNorm::per_head);
            CHECK(m.config.activation == ActivationKind::swigluoai);
            CHECK(m.config.activation_alpha == 1.702F);
            CHECK(m.config.activation_limit == 7.0F);
            CHECK(m.config.msa.index_dim == 32);
            CHECK(m.config.msa.block_tokens == 16);
            CHECK(m.config.msa.top_k == 4);
            CHECK(m.config.msa.init_blocks == 0);
            CHECK(m.config.msa.local_blocks == 1);
            CHECK(m.config.moe.n_experts == 8);
            CHECK(m.config.moe.n_used == 2);
            CHECK(m.config.moe.expert_dim == 32);
            CHECK(m.config.moe.shared_dim == 32);
            CHECK(m.config.moe.router == RouterKind::sigmoid);
            CHECK(m.config.moe.selection_bias);
            CHECK(m.config.moe.renormalise);
            CHECK(m.config.moe.scale == 2.0F);
            CHECK_FALSE(m.config.tied_head);
            CHECK_FALSE(m.config.dense_approximation);
            check_shape(m.weights.token_embedding, 512, 96);
            check_shape(m.weights.output, 512, 96);
            for (std::size_t i = 0; i < 5; ++i) check_m3_layer(m, i);
        }
    }

    TEST_CASE("the forms of MiniMax-M3 hold the same values in the same places") {
        const Bound gguf = bind("m3-tiny/model-f32.gguf");
        check_same_values(bind("m3-tiny"), gguf);
        check_same_values(bind("m3-tiny/hf-saved"), gguf);
    }

    TEST_CASE("attention and MLP kinds are read layer by layer") {
        const Bound mixed = bind("m3-mixed");
        CHECK(kinds(mixed.config) == "mdddmdmx");
        for (std::size_t i = 0; i < 4; ++i) check_m3_layer(mixed, i);
        CHECK(kinds(bind("m3-long").config) == "ddmxmxmx");
        const Bound recall = bind("m3-recall/model-bf16.gguf");
        CHECK(kinds(recall.config) == "mxmxmx");
        CHECK(recall.config.max_context == 1048576);
        check_same_values(bind("m3-recall"), recall);
        check_same_values(bind("m3-long"), bind("m3-long/model-bf16.gguf"));
    }

    TEST_CASE("a module for multi-token prediction is left out with a note") {
        const Bound m = bind("m3-tiny");
        REQUIRE(m.weights.notes.size() == 1);
        CHECK(contains(m.weights.notes[0], "1 tensor ignored: multi-token-prediction"));
        CHECK(bind("m3-tiny/model-f32.gguf").weights.notes.empty());
    }

    TEST_CASE("MiniMax-M2 norms q and k over all heads and has experts in every layer") {
        for (const char* name : {"m2-tiny", "m2-tiny/model-f32.gguf"}) {
            CAPTURE(name);
            const Bound m = bind(name);
            CHECK(m.config.architecture == "minimax-m2");
            CHECK(kinds(m.config) == "dxdxdx");
            CHECK(m.config.qk_norm == QkNorm::all_heads);
            CHECK(m.config.activation == ActivationKind::silu);
            CHECK_FALSE(m.config.zero_centred_norms);
            CHECK(m.config.rope_dim == 16);
            CHECK(m.config.moe.router == RouterKind::sigmoid);
            CHECK(m.config.moe.selection_bias);
            CHECK(m.config.moe.renormalise);
            CHECK(m.config.moe.shared_dim == 0);
            CHECK(m.config.moe.scale == 1.0F);
            CHECK(m.weights.layers[0].shared_gate == nullptr);
            check_shape(m.weights.layers[2].q_norm, 1, 192);
            check_shape(m.weights.layers[2].k_norm, 1, 64);
            check_shape(m.weights.layers[2].expert_down[7], 96, 32);
        }
        check_same_values(bind("m2-tiny"), bind("m2-tiny/model-f32.gguf"));
    }

    TEST_CASE("Qwen3 norms q and k per head, with heads wider than the hidden size suggests") {
        for (const char* name : {"qwen3-tiny", "qwen3-tiny/model-f32.gguf"}) {
            CAPTURE(name);
            const Bound m = bind(name);
            CHECK(m.config.architecture == "qwen3");
            CHECK(kinds(m.config) == "dddddd");
            CHECK(m.config.qk_norm == QkNorm::per_head);
            CHECK(m.config.head_dim == 32);
            CHECK(m.config.rope_dim == 32);
            check_shape(m.weights.layers[0].wq, 192, 96);
            check_shape(m.weights.layers[0].q_norm, 1, 32);
        }
        check_same_values(bind("qwen3-tiny"), bind("qwen3-tiny/model-f32.gguf"));
    }
}
