// Whole GGUF files: the real SmolLM2, the tiny llama in every quantisation, split sets.
#include "model/load/gguf_model.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "model/error.h"
#include "model/load/quant.h"
#include "model/load/weights.h"
#include "support/gguf_writer.h"
#include "support/model_path.h"

namespace json = boost::json;
using namespace skein::model;
using skein::test::read_file;

TEST_SUITE("model/load/gguf_model") {
    std::vector<float> decode(const Tensor& tensor) {
        std::vector<float> values(static_cast<std::size_t>(tensor.row_length() * tensor.n_rows()));
        dequantize(tensor.type, tensor.data, values);
        return values;
    }

    TEST_CASE("the real SmolLM2 file has the expected tensors, shapes and values") {
        const json::value expected =
            json::parse(read_file(SKEIN_TEST_DATA "/fixtures/smollm2/gguf.json"));
        const auto file = open_model_file(skein::test::model_path());
        CHECK(file->format() == "gguf");
        CHECK(file->total_bytes() == expected.at("bytes").to_number<std::uint64_t>());
        const json::object& tensors = expected.at("tensors").as_object();
        CHECK(file->tensors().size() == tensors.size());
        for (const auto& [name, want] : tensors) {
            CAPTURE(name);
            const Tensor* tensor = file->find(name);
            REQUIRE(tensor != nullptr);
            CHECK(dtype_info(tensor->type).name == want.at("type").as_string());
            const json::array& shape = want.at("shape").as_array();
            REQUIRE(tensor->n_dims == static_cast<int>(shape.size()));
            for (std::size_t i = 0; i < shape.size(); ++i) {
                CHECK(tensor->dims[shape.size() - 1 - i] == shape[i].to_number<std::int64_t>());
            }
            const std::vector<float> values = decode(*tensor);
            const json::array& first = want.at("first").as_array();
            for (std::size_t i = 0; i < first.size(); ++i) {
                CHECK(values[i] == static_cast<float>(first[i].to_number<double>()));
            }
            double sum = 0.0;
            double sum_abs = 0.0;
            for (const float v : values) {
                sum += static_cast<double>(v);
                sum_abs += std::fabs(static_cast<double>(v));
            }
            // The sums are of the same numbers; only the order of a double addition may differ.
            const double tolerance = 1e-9 * want.at("sum_abs").to_number<double>();
            CHECK(std::fabs(sum - want.at("sum").to_number<double>()) <= tolerance);
            CHECK(std::fabs(sum_abs - want.at("sum_abs").to_number<double>()) <= tolerance);
        }
    }

    TEST_CASE("the real SmolLM2 file gives config, weights and vocabulary") {
        const auto file = open_model_file(skein::test::model_path());
        const ModelConfig config = file->config();
        CHECK(config.architecture == "llama");
        CHECK(config.name == "Smollm2 135M 8k Lc100K Mix1 Ep2");
        CHECK(config.dim == 576);
        CHECK(config.n_layers() == 30);
        CHECK(config.n_heads == 9);
        CHECK(config.n_kv_heads == 3);
        CHECK(config.head_dim == 64);
        CHECK(config.rope_dim == 64);
        CHECK(config.vocab_size == 49152);
        CHECK(config.max_context == 8192);
        CHECK(config.rope_theta == 100000.0);
        CHECK(config.rope == RopeKind::interleaved);
        CHECK(config.norm_eps == 1e-5F);
        CHECK(config.tied_head);
        CHECK(config.layers[29].hidden_dim == 1536);

        const Weights weights = bind_weights(*file, config);
        CHECK(weights.output == weights.token_embedding);
        CHECK(weights.rope_freqs == nullptr);
        CHECK(weights.layers[7].w_down == file->find("blk.7.ffn_down.weight"));
        CHECK(weights.layers[0].bq == nullptr);
        CHECK(weights.layers[0].q_norm == nullptr);

        const Vocabulary vocabulary = file->vocabulary();
        CHECK(vocabulary.pre_tokenizer == "smollm");
        CHECK(vocabulary.texts.size() == 49152);
        CHECK(vocabulary.merges.size() == 48900);
        CHECK(vocabulary.bos == 1);
        CHECK(vocabulary.eos == 2);
        CHECK(vocabulary.texts[2] == "<|im_end|>");
        CHECK(vocabulary.types[2] == TokenType::control);
        CHECK_FALSE(vocabulary.add_bos);
        CHECK(file->chat_template().find("<|im_start|>") != std::string::npos);
    }
}
