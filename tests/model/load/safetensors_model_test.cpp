// Model folders: the tiny llama against its GGUF, shards, alignment, refusals.
#include "model/load/safetensors_model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "model/load/json_text.h"
#include "model/load/quant.h"
#include "model/load/weights.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"

using namespace skein::model;
using namespace skein::test;

namespace {

constexpr const char* kTiny = SKEIN_TEST_DATA "/fixtures/llama-tiny";

std::vector<float> decode(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.row_length() * tensor.n_rows()));
    dequantize(tensor.type, tensor.data, values);
    return values;
}

std::string safetensors(std::string header, const std::string& data) {
    const std::uint64_t length = header.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    return out + header + data;
}

std::string one_tensor(const char* name, const char* dtype, int n, std::size_t bytes,
                       const char* padding = "") {
    return safetensors(
        fmt::format(R"({{"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}}{})", name,
                    dtype, n, bytes, padding),
        std::string(bytes, '\1'));
}

std::string folder_refusal(const TemporaryFolder& folder) {
    return error_text([&] { open_model_file(folder.path()); });
}

}  // namespace

TEST_SUITE("model/load/safetensors_model") {
    TEST_CASE(
        "the tiny llama folder holds the weights of its GGUF with q and k in half-split rows") {
        const auto folder = open_model_file(kTiny);
        const auto gguf = open_model_file(std::string(kTiny) + "/model-f32.gguf");
        CHECK(folder->format() == "safetensors");
        const ModelConfig a = folder->config();
        const ModelConfig b = gguf->config();
        CHECK(a.rope == RopeKind::half_split);
        CHECK(b.rope == RopeKind::interleaved);
        CHECK(a.dim == b.dim);
        CHECK(a.n_heads == b.n_heads);
        CHECK(a.head_dim == b.head_dim);
        CHECK(a.vocab_size == b.vocab_size);
        CHECK(a.max_context == b.max_context);
        CHECK(a.norm_eps == b.norm_eps);
        CHECK(a.tied_head);
        const Weights x = bind_weights(*folder, a);
        const Weights y = bind_weights(*gguf, b);
        CHECK(decode(*x.token_embedding) == decode(*y.token_embedding));
        CHECK(decode(*x.output_norm) == decode(*y.output_norm));
        for (std::size_t i = 0; i < x.layers.size(); ++i) {
            CHECK(decode(*x.layers[i].wv) == decode(*y.layers[i].wv));
            CHECK(decode(*x.layers[i].w_down) == decode(*y.layers[i].w_down));
            CHECK(decode(*x.layers[i].attn_norm) == decode(*y.layers[i].attn_norm));
            // Row 2j + h of a GGUF head is row j + h * head_dim / 2 of the published head.
            const std::vector<float> published = decode(*x.layers[i].wq);
            const std::vector<float> permuted = decode(*y.layers[i].wq);
            const auto dim = static_cast<std::size_t>(a.dim);
            const auto head = static_cast<std::size_t>(a.head_dim);
            bool equal = true;
            for (std::size_t row = 0; row < published.size() / dim; ++row) {
                const std::size_t in_head = row % head;
                const std::size_t source = row - in_head + in_head / 2 + (in_head % 2) * (head / 2);
                equal = equal && std::memcmp(&permuted[row * dim], &published[source * dim],
                                             dim * sizeof(float)) == 0;
            }
            CHECK(equal);
        }
        CHECK(folder->describe()[1].first == "model_type");
        CHECK(folder->chat_template().empty());
        CHECK(folder->total_bytes() == 526608);
        CHECK(contains(error_text([&] { folder->vocabulary(); }), "holds no tokenizer.json"));
    }

    // [tensors at unaligned addresses]
    TEST_CASE("tensors at odd addresses give the same values and are aligned for readers") {
        for (const char* padding : {"", " ", "  ", "   "}) {
            const TemporaryFolder folder;
            write_file(folder / "config.json", "{}");
            write_file(folder / "model.safetensors", one_tensor("w", "F32", 4, 16, padding));
            const auto file = open_model_file(folder.path());
            const Tensor* w = file->find("w");
            CHECK(reinterpret_cast<std::uintptr_t>(w->data) % 4 == 0);
            CHECK(decode(*w)[3] == decode(*w)[0]);
            CHECK(w->data[15] == std::byte{1});
        }
    }

    TEST_CASE("shards named by an index are one model") {
        const TemporaryFolder folder;
        write_file(folder / "config.json", "{}");
        write_file(folder / "one.safetensors", one_tensor("a", "F32", 1, 4));
        write_file(folder / "two.safetensors", one_tensor("b", "F16", 2, 4));
        const auto index = [&](const char* map) {
            write_file(folder / "model.safetensors.index.json",
                       fmt::format(R"({{"weight_map":{}}})", map));
        };
        index(R"({"a":"one.safetensors","b":"two.safetensors"})");
        const auto file = open_model_file(folder.path());
        CHECK(file->tensors().size() == 2);
        CHECK(file->find("b")->type == DType::f16);

        index(R"({"a":"one.safetensors","c":"two.safetensors"})");
        CHECK(
            contains(folder_refusal(folder), "the index says tensor 'c' is in 'two.safetensors'"));
        index(R"({"a":"three.safetensors"})");
        CHECK(contains(folder_refusal(folder), "three.safetensors': No such file"));
        for (const char* bad : {"\"../one.safetensors\"", "\"/etc/passwd\"", "\"..\"", "7",
                                "\"config.json\"", "\"x/one.safetensors\""}) {
            index(fmt::format(R"({{"a":{}}})", bad).c_str());
            CHECK(contains(folder_refusal(folder), "is not a plain .safetensors file name"));
        }
        index("{}");
        CHECK(contains(folder_refusal(folder), "'weight_map' is not a filled object"));
        write_file(folder / "two.safetensors", one_tensor("a", "F32", 1, 4));
        index(R"({"a":"one.safetensors","b":"two.safetensors"})");
        CHECK(contains(folder_refusal(folder), "tensor 'a' is also in 'one.safetensors'"));
    }

    TEST_CASE("tensor types outside this build and empty tensors are refused by name") {
        const TemporaryFolder folder;
        write_file(folder / "config.json", "{}");
        write_file(folder / "model.safetensors", one_tensor("w", "I64", 1, 8));
        CHECK(contains(folder_refusal(folder), "tensor 'w' has type I64"));
        write_file(folder / "model.safetensors", one_tensor("w", "F32", 0, 0));
        CHECK(contains(folder_refusal(folder), "tensor 'w' has shape [0]"));
    }

    TEST_CASE("config.json fields that change the forward pass are refused, not ignored") {
        const std::string text = read_file(std::string(kTiny) + "/config.json");
        const auto with = [&](const char* key, const boost::json::value& value) {
            boost::json::value config = parse_json(text, "config.json");
            config.as_object()[key] = value;
            return error_text([&] { safetensors_config(config, "config.json", false, 0); });
        };
        CHECK(with("unrelated", 1).empty());
        CHECK(contains(with("hidden_act", "gelu"), "'hidden_act' is gelu"));
        CHECK(contains(with("rope_scaling", {{"rope_type", "llama3"}}), "'rope_scaling' is {"));
        CHECK(with("rope_scaling", nullptr).empty());
        CHECK(contains(with("use_sliding_window", true), "'use_sliding_window' is true"));
        CHECK(contains(with("partial_rotary_factor", 0.5), "'partial_rotary_factor' is 0.5"));
        CHECK(contains(with("model_type", "zeta"), "unsupported architecture 'zeta'"));
        CHECK(contains(with("hidden_size", "96"), "'hidden_size' must be"));
        CHECK(contains(with("num_attention_heads", 10), "'hidden_size' 96 is not a multiple"));
    }
}
