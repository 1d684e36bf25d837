// Tokenizer tables from GGUF metadata and from tokenizer.json.
#include "model/load/stated_vocabulary.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "model/load/gguf_model.h"
#include "model/load/json_text.h"
#include "model/load/safetensors_model.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"
#include "support/tiny_llama.h"

using namespace skein::model;
using namespace skein::test;
namespace json = boost::json;

namespace {

Vocabulary vocabulary_of(const GgufWriter& writer) {
    const std::string bytes = writer.bytes();
    return gguf_vocabulary(parse_gguf(std::as_bytes(std::span(bytes)), "test.gguf"));
}

std::string refusal(const GgufWriter& writer) {
    return error_text([&] { vocabulary_of(writer); });
}

/// Four tokens and one merge, with extra keys added by the caller.
GgufWriter small(std::string_view pre = "smollm") {
    const std::vector<std::string> tokens{"a", "b", "ab", "<s>"};
    const std::vector<std::int32_t> types{1, 1, 1, 3};
    const std::vector<std::string> merges{"a b"};
    GgufWriter writer;
    writer.string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", tokens)
        .i32s("tokenizer.ggml.token_type", types)
        .strings("tokenizer.ggml.merges", merges);
    return writer;
}

GgufWriter tables(const std::vector<std::string>& tokens, const std::vector<std::int32_t>& types,
                  const std::vector<std::string>& merges) {
    GgufWriter writer;
    writer.string("tokenizer.ggml.model", "gpt2")
        .strings("tokenizer.ggml.tokens", tokens)
        .i32s("tokenizer.ggml.token_type", types)
        .strings("tokenizer.ggml.merges", merges);
    return writer;
}

json::value fixture() {
    return parse_json(read_file(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/tokenizer.json"),
                      "fixture");
}

}  // namespace

TEST_SUITE("model/load/stated_vocabulary") {
    TEST_CASE("token texts are raw bytes, control tokens are literal") {
        GgufWriter writer;
        add_tiny_tokenizer(writer);
        const Vocabulary v = vocabulary_of(writer);
        REQUIRE(v.texts.size() == kTinyVocabulary);
        for (std::size_t b = 0; b < 256; ++b) {
            CHECK(v.texts[b] == std::string(1, static_cast<char>(b)));
        }
        CHECK(v.texts[kTinyStart] == "<|im_start|>");
        CHECK(v.types[kTinyStart] == TokenType::control);
        CHECK(v.merges[2] == std::pair<std::string, std::string>("he", "ll"));
        CHECK(v.eos == static_cast<Token>(kTinyEnd));
        CHECK_FALSE(v.eot.has_value());
        CHECK_FALSE(v.padding.has_value());
    }

    TEST_CASE("known pre-tokenizer names are unified, others are passed on") {
        CHECK(vocabulary_of(small("gpt-2")).pre_tokenizer == "gpt2");
        CHECK(vocabulary_of(small("gpt-4o")).pre_tokenizer == "o200k");
        CHECK(vocabulary_of(small("llama3")).pre_tokenizer == "llama-bpe");
        CHECK(vocabulary_of(small("llama3")).ignore_merges);
        CHECK(vocabulary_of(small("llama3")).add_bos);
        CHECK_FALSE(
            vocabulary_of(small("llama3").boolean("tokenizer.ggml.add_bos_token", false)).add_bos);
        CHECK(vocabulary_of(small("weird")).pre_tokenizer == "weird");
    }

    // [end-of-text id one past the vocabulary]
    TEST_CASE("special ids outside the vocabulary are refused, 2^32 - 1 means none") {
        CHECK(contains(refusal(small().u32("tokenizer.ggml.eos_token_id", 4)),
                       "'tokenizer.ggml.eos_token_id' is 4, the vocabulary has 4 tokens"));
        const Vocabulary v = vocabulary_of(small()
                                               .u32("tokenizer.ggml.eos_token_id", 3)
                                               .u32("tokenizer.ggml.eot_token_id", 0xFFFFFFFFU)
                                               .u32("tokenizer.ggml.padding_token_id", 1));
        CHECK(v.eos == 3);
        CHECK_FALSE(v.eot.has_value());
        CHECK_FALSE(v.bos.has_value());
        CHECK(v.padding == 1);
    }

    TEST_CASE("broken tables are refused with the entry") {
        CHECK(contains(refusal(tables({"a"}, {1, 1}, {})), "2 token types for 1 tokens"));
        CHECK(contains(refusal(tables({"a"}, {9}, {})), "token 0 has type 9"));
        CHECK(contains(refusal(tables({"a"}, {0}, {})), "token 0 has type 0"));
        CHECK(contains(refusal(tables({}, {}, {})), "no tokens"));
        CHECK(contains(refusal(tables({"a", "b"}, {1, 1}, {"a b"})), "'ab' is not a token"));
        CHECK(contains(refusal(tables({"a", "ac"}, {1, 1}, {"a c"})), "'c' is not a token"));
        CHECK(contains(refusal(tables({"a"}, {1}, {"a"})), "merge 0 is 'a', expected two parts"));
        CHECK(contains(refusal(tables({"a"}, {1}, {""})), "merge 0 is '', expected two parts"));
        CHECK(contains(refusal(tables({"a"}, {1}, {" "})), "merge 0 is ' ', expected two parts"));
        CHECK(contains(refusal(tables({"a", "あ", "aあ"}, {1, 1, 1}, {"a あ"})),
                       "outside the byte alphabet"));
        CHECK(contains(refusal(tables({std::string(70000, 'a')}, {1}, {})), "token 0 has 70000"));
    }

    TEST_CASE("a missing or foreign tokenizer is refused as that") {
        CHECK(contains(refusal(GgufWriter()), "holds no tokenizer"));
        CHECK(contains(refusal(GgufWriter().string("tokenizer.ggml.model", "llama")),
                       "tokenizer model 'llama' is not supported, only 'gpt2'"));
        CHECK(contains(refusal(GgufWriter().string("tokenizer.ggml.model", "gpt2")),
                       "required key 'tokenizer.ggml.tokens' is missing"));
    }
}

TEST_SUITE("model/load/tokenizer_json") {
    TEST_CASE("tokenizer.json gives bytes, merges, added tokens and padding rows") {
        const json::value settings = parse_json(
            read_file(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/tokenizer_config.json"), "settings");
        const Vocabulary v = tokenizer_json_vocabulary(fixture(), settings, "fixture", 512);
        REQUIRE(v.texts.size() == 512);
        CHECK(v.pre_tokenizer == "minimax-m2");
        CHECK(v.merges.size() == 192);
        CHECK(v.texts[506] == "]<]minimax[>[");
        CHECK(v.types[506] == TokenType::control);
        CHECK(v.types[498] == TokenType::user_defined);
        CHECK(v.types[510] == TokenType::unused);
        CHECK(v.texts[511].empty());
        CHECK(v.eos == 468);
        CHECK(v.bos == 482);
        CHECK_FALSE(v.add_bos);
        std::size_t one_byte = 0;
        for (const std::string& text : v.texts) one_byte += text.size() == 1 ? 1 : 0;
        CHECK(one_byte == 256);
    }

    TEST_CASE("the same tables come out of GGUF and of tokenizer.json") {
        const auto gguf = open_model_file(SKEIN_TEST_DATA "/fixtures/llama-tiny/model-f32.gguf");
        const Vocabulary a = gguf->vocabulary();
        const Vocabulary b =
            tokenizer_json_vocabulary(fixture(), json::object(), "fixture", a.texts.size());
        CHECK(a.merges == b.merges);
        CHECK(a.pre_tokenizer == b.pre_tokenizer);
        for (std::size_t i = 0; i < 509; ++i) CHECK(a.texts[i] == b.texts[i]);
    }

    TEST_CASE("other tokenizers are refused with the part that is not supported") {
        const auto with = [](const char* key, const json::value& value) {
            json::value root = fixture();
            root.as_object()[key] = value;
            return error_text(
                [&] { tokenizer_json_vocabulary(root, json::object(), "fixture", 512); });
        };
        CHECK(contains(with("normalizer", {{"type", "Lowercase"}}), "normalizer 'Lowercase'"));
        CHECK(with("normalizer", {{"type", "NFC"}}).empty());
        CHECK(contains(with("pre_tokenizer", nullptr), "'pre_tokenizer' is missing"));
        CHECK(contains(with("pre_tokenizer", {{"type", "Whitespace"}}), "is not known"));
        CHECK(contains(with("model", {{"type", "Unigram"}}), "'Unigram' is not supported"));
        CHECK(contains(with("model", {{"type", "BPE"}, {"vocab", {{"a", 600}}}}),
                       "token id 600 is not in the vocabulary of 512"));
        CHECK(contains(with("model", {{"vocab", {{"a", 0}, {"b", 0}}}, {"merges", json::array()}}),
                       "token id 0 belongs to"));
        CHECK(contains(error_text([] {
                           const json::object settings{{"eos_token", "nowhere"}};
                           tokenizer_json_vocabulary(fixture(), settings, "fixture", 512);
                       }),
                       "'eos_token' is 'nowhere', which is not a token"));
    }

    TEST_CASE("pre-tokenizers made of standard steps are recognised") {
        const auto name = [](const char* text) {
            json::value root = fixture();
            root.as_object()["pre_tokenizer"] = parse_json(text, "test");
            return tokenizer_json_vocabulary(root, json::object(), "fixture", 512).pre_tokenizer;
        };
        CHECK(name(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})") == "gpt2");
        CHECK(name(R"({"type":"Sequence","pretokenizers":[)"
                   R"({"type":"Digits","individual_digits":true},)"
                   R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]})") ==
              "smollm");
    }
}
