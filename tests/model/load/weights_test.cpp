#include "model/load/weights.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/load/architecture.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"
#include "support/tiny_llama.h"

using namespace skein::model;
using namespace skein::test;

namespace {

struct Opened {
    TemporaryFolder folder;
    std::unique_ptr<ModelFile> file;
    explicit Opened(const GgufWriter& writer) {
        writer.write(folder / "m.gguf");
        file = open_model_file(folder / "m.gguf");
    }
};

std::string refusal(const GgufWriter& writer) {
    const Opened opened(writer);
    return error_text([&] { bind_weights(*opened.file, opened.file->config()); });
}

}  // namespace

TEST_SUITE("model/load/weights") {
    TEST_CASE("every place of every dense architecture is bound with its shape") {
        for (const Architecture& row : architectures()) {
            if (row.experts) continue;
            CAPTURE(row.name);
            TinyShape shape;
            shape.architecture = row.name;
            shape.tied_head = false;
            const Opened opened(tiny_llama(shape));
            const Weights w = bind_weights(*opened.file, opened.file->config());
            REQUIRE(w.layers.size() == 2);
            CHECK(w.output != w.token_embedding);
            CHECK(w.layers[1].wk->n_rows() == 32);
            CHECK(w.layers[1].w_down->row_length() == 96);
            CHECK((w.layers[0].bq != nullptr) == row.qkv_bias);
            CHECK((w.layers[0].k_norm != nullptr) == (row.qk_norm != QkNorm::none));
        }
    }

    TEST_CASE("a head that the file does not have is the embedding") {
        const Opened opened(tiny_llama());
        const ModelConfig config = opened.file->config();
        CHECK(config.tied_head);
        const Weights w = bind_weights(*opened.file, config);
        CHECK(w.output == w.token_embedding);
    }

    TEST_CASE("frequency divisors are bound when the file has them") {
        GgufWriter writer = tiny_llama();
        const std::vector<float> divisors(8, 2.0F);
        writer.tensor("rope_freqs.weight", DType::f32, {8}, divisors);
        const Opened opened(writer);
        CHECK(bind_weights(*opened.file, opened.file->config()).rope_freqs->row_length() == 8);
    }

    // [complete file reported as incomplete]
    TEST_CASE("an absent tensor is named, and nothing is called broken") {
        GgufWriter writer;
        add_tiny_config(writer, {});
        const std::vector<float> values(262 * 64, 0.5F);
        writer.tensor("token_embd.weight", DType::f32, {64, 262}, values);
        const std::string text = refusal(writer);
        CHECK(contains(text, "architecture 'llama' needs tensor 'output_norm.weight'"));
        CHECK_FALSE(contains(text, "truncated"));
        CHECK_FALSE(contains(text, "corrupt"));
    }

    TEST_CASE("a tensor whose shape contradicts the metadata is refused before anyone reads it") {
        TinyShape shape;
        GgufWriter writer;
        shape.hidden_dim = 128;
        add_tiny_config(writer, shape);
        shape.hidden_dim = 96;
        add_tiny_tensors(writer, shape);
        CHECK(contains(refusal(writer),
                       "tensor 'blk.0.ffn_gate.weight' is 96 rows of 64, the metadata says 128 "
                       "rows of 64"));
    }

    TEST_CASE("a tensor without a place would change the results and is refused") {
        GgufWriter writer = tiny_llama();
        const std::vector<float> values(64, 1.0F);
        writer.tensor("blk.0.attn_output.bias", DType::f32, {64}, values);
        CHECK(contains(refusal(writer), "has no place for tensor 'blk.0.attn_output.bias'"));
    }

    TEST_CASE("a block-quantised norm vector is refused") {
        GgufWriter writer;
        add_tiny_config(writer, {});
        const std::vector<float> values(262 * 64, 0.5F);
        writer.tensor("token_embd.weight", DType::f32, {64, 262}, values);
        writer.tensor("output_norm.weight", DType::q8_0, {64}, std::span(values).first(64));
        CHECK(contains(refusal(writer), "'output_norm.weight' is a vector of type Q8_0"));
    }
}
