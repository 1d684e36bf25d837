#include "model/text/tokenizer.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "model/error.h"
#include "tests/model/text/text_fixtures.h"
#include "tests/support/byte_vocabulary.h"

using namespace skein::model;
using namespace skein::test;

namespace {

Tokenizer m3_tokenizer() {
    const auto file = load_json(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/tokenizer.json");
    return Tokenizer(vocabulary_of(file, "minimax-m2", 512));
}

std::string streamed(const Tokenizer& tokenizer, std::span<const Token> tokens) {
    Detokenizer stream(tokenizer);
    std::string text;
    for (const Token token : tokens) text += stream.push(token);
    return text + stream.flush();
}

}  // namespace

TEST_SUITE_BEGIN("model/text/tokenizer");

TEST_CASE("tokenizer: MiniMax-M3 fixture pieces and ids, trusted and untrusted") {
    const Tokenizer tokenizer = m3_tokenizer();
    const auto expected = load_json(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/expected.json");
    const auto& cases = expected.at("cases").as_array();
    REQUIRE(cases.size() == 58);
    for (const auto& c : cases) {
        const std::string text = as_string(c.at("text"));
        CAPTURE(text);
        CHECK(tokenizer.pieces(text) ==
              boost::json::value_to<std::vector<std::size_t>>(c.at("pieces")));
        CHECK(tokenizer.encode(text) == as_tokens(c.at("ids_untrusted")));
        CHECK(tokenizer.encode_with_specials(text) == as_tokens(c.at("ids")));
        CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
        CHECK(tokenizer.decode(tokenizer.encode_with_specials(text)) == text);
    }
}

TEST_CASE("tokenizer: invalid UTF-8 is shown with one U+FFFD a maximal part, streamed or whole") {
    const Tokenizer tokenizer = m3_tokenizer();
    const auto expected = load_json(SKEIN_TEST_DATA "/fixtures/m3-tokenizer/expected.json");
    for (const auto& c : expected.at("byte_sequences").as_array()) {
        CAPTURE(as_string(c.at("hex")));
        const Tokens ids = as_tokens(c.at("ids_bytewise"));
        const std::string shown = as_string(c.at("decoded_with_replacement"));
        CHECK(tokenizer.decode(ids) == from_hex(as_string(c.at("hex"))));
        CHECK(to_valid_utf8(tokenizer.decode(ids)) == shown);
        CHECK(streamed(tokenizer, ids) == shown);
    }
}

TEST_CASE("tokenizer: untrusted bytes never become a control or user-defined token") {
    const Tokenizer m3 = m3_tokenizer();
    const Tokenizer chatml(byte_vocabulary());
    for (const Tokenizer* tokenizer : {&m3, &chatml}) {
        int specials = 0;
        for (Token token = 0; token < tokenizer->vocab_size(); ++token) {
            const std::string text(tokenizer->token_bytes(token));
            if (!tokenizer->is_special(token) || text.empty()) continue;
            ++specials;
            CAPTURE(text);
            CHECK(tokenizer->find_special(text) == token);
            CHECK(tokenizer->encode_with_specials(text) == Tokens{token});
            for (const std::string& hidden :
                 {text, "a" + text, text + text, "\n" + text + "\n", " " + text + " x"}) {
                const Tokens ids = tokenizer->encode(hidden);
                CHECK(tokenizer->decode(ids) == hidden);
                for (const Token id : ids) CHECK_FALSE(tokenizer->is_special(id));
            }
        }
        CHECK(specials >= 3);
    }
}

TEST_CASE("tokenizer: specials match the longest literal text first") {
    Vocabulary v = byte_vocabulary();
    v.texts.emplace_back("<|im_end|>\n");
    v.types.push_back(TokenType::user_defined);
    const auto longer = static_cast<Token>(v.texts.size() - 1);
    const Tokenizer tokenizer(v);
    CHECK(tokenizer.encode_with_specials("<|im_end|>\nx") == Tokens{longer, 'x'});
    CHECK(tokenizer.encode_with_specials("<|im_end|>x") == Tokens{kImEnd, 'x'});
    CHECK(tokenizer.encode_with_specials("<<|im_end|>") == Tokens{'<', kImEnd});
    CHECK_FALSE(tokenizer.find_special("<|im_end|>x"));
    CHECK_FALSE(tokenizer.find_special(""));
}

TEST_CASE("tokenizer: decoding what was encoded gives the same bytes, for any bytes") {
    const Tokenizer m3 = m3_tokenizer();
    const Tokenizer small(byte_vocabulary());
    std::mt19937 random(20);
    for (int i = 0; i < 2000; ++i) {
        std::string bytes;
        const bool text = i % 2 == 0;
        for (std::size_t n = random() % 80; n > 0; --n) {
            bytes.push_back(text ? "the {\"a\": 00}\n'\xC3\xA9\xE4"[random() % 19]
                                 : static_cast<char>(random()));
        }
        for (const Tokenizer* tokenizer : {&m3, &small}) {
            const Tokens ids = tokenizer->encode(bytes);
            CHECK(tokenizer->decode(ids) == bytes);
            CHECK(streamed(*tokenizer, ids) == to_valid_utf8(bytes));
        }
    }
}

TEST_CASE("detokenizer: a character in two tokens comes out whole, and only at its end") {
    const Tokenizer tokenizer(byte_vocabulary());
    for (const std::string text :
         {"\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7", "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA",
          "\xED\x95\x9C\xEA\xB5\xAD", "\xE0\xA4\xB9\xE0\xA4\xBF\xE0\xA4\xA8"}) {
        const Tokens ids = tokenizer.encode(text);
        for (std::size_t cut = 0; cut <= ids.size(); ++cut) {
            Detokenizer stream(tokenizer);
            std::string shown;
            for (std::size_t i = 0; i < cut; ++i) {
                shown += stream.push(ids[i]);
                CHECK(shown.find("\xEF\xBF\xBD") == std::string::npos);
            }
            shown += stream.flush();
            CHECK(shown == to_valid_utf8(tokenizer.decode(std::span(ids).first(cut))));
            CHECK(stream.flush().empty());
        }
    }
}

TEST_CASE("detokenizer: a control token ends an unfinished character") {
    const Tokenizer tokenizer(byte_vocabulary());
    Detokenizer stream(tokenizer);
    CHECK(stream.push(0xE4).empty());
    CHECK(stream.push(kImEnd) == "\xEF\xBF\xBD<|im_end|>");
    CHECK(stream.flush().empty());
}

TEST_CASE("tokenizer: a mebibyte of one class is encoded whole by every family") {
    for (const char* family : {"smollm", "qwen2", "llama-bpe", "o200k"}) {
        Vocabulary v = byte_vocabulary();
        v.pre_tokenizer = family;
        const Tokenizer tokenizer(v);
        for (const std::string unit : {"a", "_", " ", "\n", "\xE4\xB8\xAD", "0"}) {
            std::string text;
            while (text.size() < (std::size_t{1} << 20)) text += unit;
            CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
        }
    }
}

TEST_CASE("tokenizer: tables that contradict themselves are refused") {
    Vocabulary v = byte_vocabulary();
    v.eos = static_cast<Token>(v.texts.size());
    CHECK_THROWS_WITH_AS(Tokenizer{v}, doctest::Contains("the eos token is 273; expected an id"),
                         Error);
    v = byte_vocabulary();
    v.bos = -1;
    CHECK_THROWS_AS(Tokenizer{v}, Error);
    v = byte_vocabulary();
    v.types.pop_back();
    CHECK_THROWS_AS(Tokenizer{v}, Error);
    v = byte_vocabulary();
    v.pre_tokenizer = "";
    CHECK_THROWS_AS(Tokenizer{v}, Error);
}

TEST_CASE("tokenizer: the fingerprint changes with every table") {
    const std::uint64_t base = Tokenizer(byte_vocabulary()).fingerprint();
    CHECK(Tokenizer(byte_vocabulary()).fingerprint() == base);
    Vocabulary v = byte_vocabulary();
    v.pre_tokenizer = "qwen2";
    CHECK(Tokenizer(v).fingerprint() != base);
    v = byte_vocabulary();
    std::swap(v.merges[3], v.merges[4]);
    CHECK(Tokenizer(v).fingerprint() != base);
    v = byte_vocabulary();
    v.types[kImEnd] = TokenType::user_defined;
    CHECK(Tokenizer(v).fingerprint() != base);
    v = byte_vocabulary();
    v.eos = std::nullopt;
    CHECK(Tokenizer(v).fingerprint() != base);
}

TEST_SUITE_END();
