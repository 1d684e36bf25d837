#include "agent/store/codec.h"

#include <doctest/doctest.h>

#include <random>

#include "agent/store/error.h"

using namespace skein::agent;
using namespace skein::agent::store;

TEST_SUITE("agent/store/codec") {
    TEST_CASE("codec: tokens come back equal, whatever their size") {
        std::mt19937 random(7);
        for (const std::size_t n : {0U, 1U, 2U, 127U, 128U, 5000U}) {
            Tokens tokens;
            for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<Token>(random() >> 1));
            CAPTURE(n);
            CHECK(decode_tokens(encode_tokens(tokens)) == tokens);
        }
        CHECK(decode_tokens(encode_tokens(Tokens{0, 127, 128, 0x7FFFFFFF})) ==
              Tokens{0, 127, 128, 0x7FFFFFFF});
    }

    TEST_CASE("codec: logprobs keep every bit") {
        const std::vector<float> values = {0.0F, -0.0F, -1e-38F, -103.97F, 1.0F / 3.0F};
        const auto back = decode_floats(encode_floats(values));
        REQUIRE(back.size() == values.size());
        CHECK(std::equal(values.begin(), values.end(), back.begin(), [](float a, float b) {
            return std::signbit(a) == std::signbit(b) && a == b;
        }));
    }

    TEST_CASE("codec: repetitive text is stored smaller, NUL and invalid UTF-8 come back") {
        const std::string text(100000, 'a');
        CHECK(compress(text).size() < 1000);
        CHECK(decompress(compress(text)) == text);
        const std::string odd("a\0b\xED\xA0\x80\xFF\xEF\xBF\xBF", 9);
        CHECK(decompress(compress(odd)) == odd);
        CHECK(decompress(compress("")) == "");
    }

    TEST_CASE("codec: damaged bytes are errors, never guesses") {
        CHECK_THROWS_AS(decompress(""), Error);
        CHECK_THROWS_AS(decompress("\x07xyz"), Error);
        std::string packed = compress(std::string(1000, 'x'));
        REQUIRE(packed[0] == 1);
        CHECK_THROWS_AS(decompress(packed.substr(0, packed.size() - 3)), Error);
        CHECK_THROWS_AS(decode_tokens(std::string("\0\x80", 2)), Error);
        CHECK_THROWS_AS(decode_tokens(std::string("\0\xFF\xFF\xFF\xFF\xFF\xFF", 7)), Error);
        CHECK_THROWS_AS(decode_floats(std::string("\0abc", 4)), Error);
        CHECK_THROWS_AS(decode_origins("\x63\x01"), Error);
        CHECK_THROWS_AS(from_hex("abc"), Error);
        CHECK_THROWS_AS(from_hex("zz"), Error);
    }

    TEST_CASE("codec: origins keep segment borders") {
        const std::vector<std::pair<Origin, std::size_t>> runs = {
            {Origin::glue, 3}, {Origin::user, 0}, {Origin::user, 500}, {Origin::user, 1}};
        CHECK(decode_origins(encode_origins(runs)) == runs);
    }

    TEST_CASE("codec: texts come back with every byte, empty ones too") {
        const std::vector<std::string> texts = {"", std::string("a\0\xFF", 3),
                                                std::string(5000, 'x')};
        CHECK(decode_strings(encode_strings(texts)) == texts);
        CHECK(decode_strings(encode_strings({})).empty());
        CHECK_THROWS_AS(decode_strings(std::string("\0\x05"
                                                   "ab",
                                                   4)),
                        Error);
    }

    TEST_CASE("codec: SHA-256 is SHA-256") {
        CHECK(to_hex(sha256("abc")) ==
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        CHECK(from_hex(to_hex(sha256("abc"))) == sha256("abc"));
    }
}
