// Whole GGUF files: the real SmolLM2, the tiny llama in every quantisation, split sets.
#include "model/load/gguf_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "model/error.h"
#include "model/load/quant.h"
#include "model/load/weights.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"
#include "support/model_path.h"

namespace json = boost::json;
using namespace skein::model;
using namespace skein::test;

namespace {

std::vector<float> decode(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.row_length() * tensor.n_rows()));
    dequantize(tensor.type, tensor.data, values);
    return values;
}

std::string refusal(const std::filesystem::path& path) {
    return error_text([&] { open_model_file(path); });
}

/// Shard `no` (from 0) of `count`, with one tensor; the first one has the metadata.
GgufWriter shard(std::uint16_t no, std::uint16_t count, const std::string& tensor) {
    const std::vector<float> values(32, static_cast<float>(no));
    GgufWriter writer;
    if (no == 0) writer.string("general.architecture", "llama");
    writer.u16("split.no", no).u16("split.count", count).i32("split.tensors.count", count);
    writer.tensor(tensor, DType::f32, {32}, values);
    return writer;
}

void write_three_shards(const TemporaryFolder& folder) {
    shard(0, 3, "a").write(folder / "m-00001-of-00003.gguf");
    shard(1, 3, "b").write(folder / "m-00002-of-00003.gguf");
    shard(2, 3, "c").write(folder / "m-00003-of-00003.gguf");
}

}  // namespace

TEST_SUITE("model/load/gguf_model") {
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

    TEST_CASE("the tiny llama loads in every quantisation, close to its F32 weights") {
        const std::string base = SKEIN_TEST_DATA "/fixtures/llama-tiny/model-";
        const auto reference = open_model_file(base + "f32.gguf");
        // About half a step of each format, relative to the largest weight of a tensor; F16 only
        // loses bits of weights below its smallest normal number.
        const std::pair<std::string, float> formats[] = {{"f16", 1e-6F},  {"q8_0", 0.01F},
                                                         {"q5_1", 0.04F}, {"q5_0", 0.07F},
                                                         {"q4_1", 0.08F}, {"q4_0", 0.13F}};
        for (const auto& [name, relative] : formats) {
            CAPTURE(name);
            const auto file = open_model_file(base + name + ".gguf");
            const ModelConfig config = file->config();
            CHECK(config.dim == 96);
            CHECK(config.n_kv_heads == 2);
            const Weights weights = bind_weights(*file, config);
            CHECK(weights.output == weights.token_embedding);
            CHECK(file->vocabulary().texts.size() == 512);
            for (const Tensor& tensor : file->tensors()) {
                const std::vector<float> got = decode(tensor);
                const std::vector<float> want = decode(*reference->find(tensor.name));
                float largest = 0.0F;
                float error = 0.0F;
                for (std::size_t i = 0; i < want.size(); ++i) {
                    largest = std::max(largest, std::fabs(want[i]));
                    error = std::max(error, std::fabs(want[i] - got[i]));
                }
                CAPTURE(tensor.name);
                CHECK(error <= relative * largest);
            }
        }
    }

    TEST_CASE("metadata is described one line a key, long values cut") {
        const auto file = open_model_file(skein::test::model_path());
        const auto lines = file->describe();
        CHECK(lines.size() == 33);
        CHECK(lines[0] == std::pair<std::string, std::string>("general.architecture", "llama"));
        for (const auto& [key, value] : lines) {
            CHECK(value.size() < 500);
            CHECK(value.find('\n') == std::string::npos);
            if (key == "tokenizer.ggml.tokens") {
                CHECK(value.starts_with("49152 x string [<|endoftext|>, "));
            }
        }
    }

    // [split sets misread]
    TEST_CASE("any shard opens the whole ordered set") {
        const TemporaryFolder folder;
        write_three_shards(folder);
        write_file(folder / "m-00004-of-00003.gguf", "unrelated");
        write_file(folder / "m-old-00001-of-00003.gguf", "unrelated");
        for (const char* name : {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf"}) {
            const auto file = open_model_file(folder / name);
            REQUIRE(file->tensors().size() == 3);
            CHECK(file->tensors()[2].name == "c");
            CHECK(decode(*file->find("b"))[0] == 1.0F);
            CHECK(file->describe()[0].second == "llama");
        }
    }

    TEST_CASE("a missing, renamed or foreign shard is named") {
        const TemporaryFolder folder;
        write_three_shards(folder);
        std::filesystem::rename(folder / "m-00003-of-00003.gguf", folder / "kept");
        CHECK(contains(refusal(folder / "m-00002-of-00003.gguf"),
                       "shard 3 of 3 is missing: '" + (folder / "m-00003-of-00003.gguf").string()));
        std::filesystem::rename(folder / "m-00002-of-00003.gguf", folder / "m-00003-of-00003.gguf");
        std::filesystem::rename(folder / "kept", folder / "m-00002-of-00003.gguf");
        CHECK(contains(refusal(folder / "m-00001-of-00003.gguf"),
                       "m-00002-of-00003.gguf: the file name says shard 2 of 3, but 'split.no' "
                       "says it is shard 3"));
        std::filesystem::copy_file(folder / "m-00001-of-00003.gguf", folder / "alone.gguf");
        CHECK(contains(refusal(folder / "alone.gguf"), "this is shard 1 of 3; its name must end"));
    }

    TEST_CASE("shards that disagree about count, total or names are refused") {
        const TemporaryFolder folder;
        write_three_shards(folder);
        shard(1, 3, "a").write(folder / "m-00002-of-00003.gguf");
        CHECK(contains(refusal(folder / "m-00001-of-00003.gguf"), "'a' occurs in two shards"));
        shard(1, 4, "b").write(folder / "m-00002-of-00003.gguf");
        CHECK(contains(refusal(folder / "m-00001-of-00003.gguf"),
                       "'split.count' is 4, the file name says 3 shards"));
        const std::vector<float> ones(32, 1.0F);
        shard(1, 3, "b")
            .tensor("extra", DType::f32, {32}, ones)
            .write(folder / "m-00002-of-00003.gguf");
        CHECK(contains(refusal(folder / "m-00001-of-00003.gguf"),
                       "'split.tensors.count' is 3, the 3 shards hold 4 tensors"));
        GgufWriter().write(folder / "x-00001-of-00002.gguf");
        CHECK(contains(refusal(folder / "x-00001-of-00002.gguf"), "'split.count' is 0"));
    }

    TEST_CASE("a path that is no model is refused with what to give instead") {
        const TemporaryFolder folder;
        write_file(folder / "a.gguf", "not a model");
        write_file(folder / "model.safetensors", "12345678{}");
        CHECK(contains(refusal(folder / "a.gguf"), "is not a GGUF file"));
        CHECK(contains(refusal(folder / "model.safetensors"), "give the folder that holds it"));
        CHECK(contains(refusal(folder.path()), "is a folder without config.json"));
        CHECK(contains(refusal(folder / "missing.gguf"), "No such file or directory"));
    }
}
