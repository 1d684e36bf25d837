// Properties that every real vocabulary must have: those of all fixture models and of the default
// model. Linear cost is shown by counting steps, never by a clock.

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "model/load/model_file.h"
#include "model/text/tokenizer.h"
#include "tests/support/m3_tokenizer.h"
#include "tests/support/model_path.h"

using namespace skein::model;
using namespace skein::test;

namespace {

struct Named {
    std::string name;
    Tokenizer tokenizer;
};

const std::vector<Named>& tokenizers() {
    static const auto all = [] {
        std::vector<Named> list;
        list.push_back({"m3-tokenizer", Tokenizer(m3_vocabulary())});
        const std::string fixtures = std::string(SKEIN_TEST_DATA) + "/fixtures/";
        for (const char* file : {"llama-tiny/model-f32.gguf", "m2-tiny/model-f32.gguf",
                                 "qwen3-tiny/model-f32.gguf", "m3-tiny/model-f32.gguf"}) {
            list.push_back({file, Tokenizer(open_model_file(fixtures + file)->vocabulary())});
        }
        list.push_back({"default", Tokenizer(open_model_file(model_path())->vocabulary())});
        return list;
    }();
    return all;
}

/// `n` bytes or a little more of one kind.
std::string sample(const std::string& kind, std::size_t n) {
    std::mt19937 random(7);
    std::string text;
    const std::string_view base64 =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::vector<std::string> scripts = {"Abc",
                                              "\xD0\x96\xD0\xB6",
                                              "\xE4\xB8\xAD",
                                              "\xE0\xA4\xB9\xE0\xA4\xBF",
                                              "\xF0\x9F\x98\x80",
                                              "9",
                                              " ",
                                              "e\xCC\x81",
                                              "'S",
                                              "/\n"};
    while (text.size() < n) {
        if (kind == "base64") {
            text += base64[random() % base64.size()];
        } else if (kind == "mixed scripts") {
            text += scripts[random() % scripts.size()];
        } else if (kind == "random bytes") {
            text += static_cast<char>(random());
        } else if (kind == "upper and other") {
            text += random() % 2 == 0 ? "A" : "\xE4\xB8\xAD";
        } else {
            text += kind;
        }
    }
    return text;
}

}  // namespace

TEST_SUITE_BEGIN("model/text/tokenizer");

TEST_CASE("tokenizer: B05, twice the bytes cost twice the steps, whatever the bytes are") {
    for (const Named& named : tokenizers()) {
        CAPTURE(named.name);
        for (const std::string kind :
             {"a", "A", "_", " ", "\n", "\t ", "0", "\xE4\xB8\xAD", "\xCC\x81", "\xFF", "'s",
              "base64", "mixed scripts", "random bytes", "upper and other"}) {
            CAPTURE(kind);
            constexpr std::size_t kSmall = 32 << 10;
            const std::uint64_t small = named.tokenizer.encode_counted(sample(kind, kSmall)).steps;
            const std::uint64_t large =
                named.tokenizer.encode_counted(sample(kind, 8 * kSmall)).steps;
            CHECK(large <= 9 * small);
            CHECK(large <= 12 * 8 * kSmall);
        }
    }
}

TEST_CASE("tokenizer: B05, a mebibyte of one kind is encoded whole") {
    const Tokenizer& m3 = tokenizers().front().tokenizer;
    for (const std::string kind : {"a", " ", "\n", "7", "base64", "mixed scripts"}) {
        CAPTURE(kind);
        const std::string text = sample(kind, std::size_t{1} << 20);
        CHECK(m3.decode(m3.encode(text)) == text);
    }
}

TEST_CASE("tokenizer: identity on bytes that have tokens; the others are dropped and counted") {
    std::mt19937 random(21);
    for (const Named& named : tokenizers()) {
        CAPTURE(named.name);
        const Tokenizer& tokenizer = named.tokenizer;
        std::array<bool, 256> lacks{};
        std::size_t lacking = 0;
        for (int b = 0; b < 256; ++b) {
            const auto i = static_cast<std::size_t>(b);
            lacks[i] = tokenizer.encode(std::string(1, static_cast<char>(b))).empty();
            lacking += lacks[i];
        }
        CHECK(lacking == (named.name == "default" ? 21 : 0));
        for (int i = 0; i < 1000; ++i) {
            std::string bytes, kept;
            for (auto n = random() % 60; n > 0; --n) {
                bytes += i % 2 == 0 ? static_cast<char>(random())
                                    : "aA 1\n\r\t'\xC3\xA9\xE4\xB8\xAD\xF5\x80"[random() % 15];
            }
            for (const char c : bytes) {
                if (!lacks[static_cast<unsigned char>(c)]) kept += c;
            }
            const Encoding encoding = tokenizer.encode_counted(bytes);
            CHECK(tokenizer.decode(encoding.tokens) == kept);
            CHECK(encoding.dropped_bytes == bytes.size() - kept.size());
            CHECK(tokenizer.count_dropped(bytes) == encoding.dropped_bytes);
        }
    }
}

TEST_CASE("tokenizer: a code point past the last one neither aborts nor becomes another") {
    const std::string past = "\xF5\x80\x80\x80";
    for (const Named& named : tokenizers()) {
        CAPTURE(named.name);
        const Encoding encoding = named.tokenizer.encode_counted("a" + past + "b");
        const std::string back = named.tokenizer.decode(encoding.tokens);
        CHECK(back.size() + encoding.dropped_bytes == past.size() + 2);
        CHECK(back.front() == 'a');
        CHECK(back.back() == 'b');
        CHECK(to_valid_utf8(past) == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    }
}

TEST_CASE("tokenizer: B07, B01, every control and user-defined text is its id only when trusted") {
    for (const Named& named : tokenizers()) {
        CAPTURE(named.name);
        const Tokenizer& tokenizer = named.tokenizer;
        std::size_t specials = 0;
        for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
            const TokenType type = tokenizer.token_type(token);
            if (type != TokenType::control && type != TokenType::user_defined) continue;
            const std::string text(tokenizer.token_bytes(token));
            CAPTURE(text);
            ++specials;
            CHECK(tokenizer.encode_with_specials(text) == Tokens{token});
            for (const std::string& hidden : {text, "x" + text + "y", text + text, " " + text}) {
                for (const Token id : tokenizer.encode(hidden)) {
                    CHECK_FALSE(tokenizer.is_special(id));
                }
            }
        }
        MESSAGE(named.name << ": " << specials << " control and user-defined tokens");
    }
}

TEST_CASE("tokenizer: the M3 fixture with only its own kind of added tokens, and without control") {
    const Tokenizer& m3 = tokenizers().front().tokenizer;
    const auto expected = load_json(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/expected.json");
    std::size_t compared = 0;
    for (const auto& entry : expected.at("cases").as_array()) {
        const auto& c = entry.as_object();
        const std::string text = as_string(c.at("text"));
        CAPTURE(text);
        if (const auto* ids = c.if_contains("ids_specials_as_text")) {
            CHECK(m3.encode_with_specials(text, TokenType::user_defined) == as_tokens(*ids));
            ++compared;
        }
        if (const auto* shown = c.if_contains("decoded_skip_special")) {
            CHECK(m3.decode_visible(as_tokens(c.at("ids"))) == as_string(*shown));
            ++compared;
        }
    }
    CHECK(compared > 10);
    for (const auto& c : expected.at("byte_sequences").as_array()) {
        const std::string bytes = from_hex(as_string(c.at("hex")));
        CHECK(m3.decode(m3.encode(bytes)) == bytes);
    }
}

TEST_SUITE_END();
