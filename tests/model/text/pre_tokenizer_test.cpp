#include "model/text/pre_tokenizer.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "model/error.h"
#include "tests/model/text/text_fixtures.h"

using namespace skein::model;
using namespace skein::test;

namespace {

std::vector<std::string> pieces_of(const char* family, std::string_view text) {
    std::vector<std::string> pieces;
    PreTokenizer(family).split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
    return pieces;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("model/text/pre_tokenizer");

TEST_CASE("pre_tokenizer: families differ in digits, newlines and the slash as published") {
    CHECK(pieces_of("gpt2", "a 12\n b") == Pieces{"a", " 12", "\n", " b"});
    CHECK(pieces_of("smollm", "a 12") == Pieces{"a", " ", "1", "2"});
    CHECK(pieces_of("smollm", "a  5") == Pieces{"a", "  ", "5"});
    CHECK(pieces_of("qwen2", "v12\n\n x") == Pieces{"v", "1", "2", "\n\n", " x"});
    CHECK(pieces_of("llama-bpe", "1234 I'LL") == Pieces{"123", "4", " I", "'LL"});
    CHECK(pieces_of("o200k", "HTTPServer I'LL") == Pieces{"HTTPServer", " I'LL"});
    CHECK(pieces_of("o200k", "x;\n/path") == Pieces{"x", ";\n/", "path"});
    CHECK(pieces_of("minimax-m2", "x;\n/path") == Pieces{"x", ";\n", "/path"});
}

TEST_CASE("pre_tokenizer: o200k gives back what backtracking would give back") {
    CHECK(pieces_of("o200k",
                    "\xE4\xB8\xAD"
                    "AB") == Pieces{"\xE4\xB8\xAD", "AB"});
    CHECK(pieces_of("o200k",
                    "AB\xE4\xB8\xAD"
                    "AB") == Pieces{"AB\xE4\xB8\xAD", "AB"});
    CHECK(pieces_of("o200k",
                    "\xCC\x81"
                    "AB") == Pieces{"\xCC\x81", "AB"});
    CHECK(pieces_of("o200k",
                    "!\xCC\x81"
                    "ab") == Pieces{"!\xCC\x81"
                                    "ab"});
}

TEST_CASE("pre_tokenizer: pieces equal the published patterns on random texts") {
    const char* more = std::getenv("SKEIN_MORE_PIECES");
    const auto rows = load_json(more ? more : SKEIN_TEST_DATA "/pieces/pieces.json").as_array();
    REQUIRE(rows.size() >= 360);
    for (const auto& row : rows) {
        const std::string family(row.at(0).as_string());
        const std::string hex(row.at(1).as_string());
        const std::string text = from_hex(hex);
        std::vector<std::size_t> lengths;
        PreTokenizer(family).split(
            text, [&](std::string_view piece) { lengths.push_back(piece.size()); });
        CAPTURE(family);
        CAPTURE(hex);
        CHECK(lengths == boost::json::value_to<std::vector<std::size_t>>(row.at(2)));
    }
}

TEST_CASE("pre_tokenizer: work is linear in every kind of run") {
    const std::string units[] = {"a",
                                 "A",
                                 "_",
                                 " ",
                                 "\n",
                                 "\t",
                                 "7",
                                 "\xE4\xB8\xAD",
                                 "\xFF",
                                 "'",
                                 "\xCC\x81",
                                 " \n",
                                 "\xE4\xB8\xAD"
                                 "A",
                                 "'s",
                                 "!A",
                                 "aA",
                                 " !"};
    for (const char* family : {"gpt2", "smollm", "qwen2", "llama-bpe", "o200k", "minimax-m2"}) {
        for (const std::string& unit : units) {
            std::string text;
            while (text.size() < 100'000) text += unit;
            std::size_t total = 0;
            const std::size_t looks = PreTokenizer(family).split(
                text, [&](std::string_view piece) { total += piece.size(); });
            CAPTURE(family);
            CAPTURE(unit);
            CHECK(total == text.size());
            CHECK(looks <= 8 * text.size());
        }
    }
}

TEST_CASE("pre_tokenizer: an unknown name is refused with the known ones") {
    CHECK_THROWS_WITH_AS(PreTokenizer("nonesuch"), doctest::Contains("known: gpt2, gpt-2, smollm"),
                         Error);
}

TEST_SUITE_END();
