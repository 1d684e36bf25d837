// The vocabulary of the real model file against the reference tokenizers' ids.

#include <doctest/doctest.h>

#include "model/load/model_file.h"
#include "model/text/tokenizer.h"
#include "tests/model/text/text_fixtures.h"
#include "tests/support/model_path.h"

using namespace skein::model;
using namespace skein::test;

namespace {

const Tokenizer& smollm2() {
    static const Tokenizer tokenizer(open_model_file(model_path())->vocabulary());
    return tokenizer;
}

boost::json::value expected() {
    return load_json(SKEIN_TEST_DATA "/fixtures/smollm2/tokenizer_expected.json");
}

}  // namespace

TEST_SUITE_BEGIN("model/text/tokenizer");

TEST_CASE("tokenizer: SmolLM2 ids of 80 texts, with and without special parsing") {
    const auto file = expected();
    REQUIRE(file.at("texts").as_array().size() == 80);
    for (const auto& row : file.at("texts").as_array()) {
        const std::string text = as_string(row.at("text"));
        CAPTURE(text);
        const Tokens plain = smollm2().encode(text);
        CHECK(plain == as_tokens(row.at("ids_plain")));
        CHECK(smollm2().encode_with_specials(text) == as_tokens(row.at("ids_parse_special")));
        const auto* lossy = row.as_object().if_contains("decodes_to_hex");
        CHECK(smollm2().decode(plain) == (lossy ? from_hex(as_string(*lossy)) : text));
    }
}

TEST_CASE("tokenizer: SmolLM2 ids of invalid UTF-8, every bad byte as it is") {
    const auto file = expected();
    REQUIRE(file.at("invalid_utf8").as_array().size() == 12);
    for (const auto& row : file.at("invalid_utf8").as_array()) {
        CAPTURE(as_string(row.at("hex")));
        const Tokens ids = smollm2().encode(from_hex(as_string(row.at("hex"))));
        CHECK(ids == as_tokens(row.at("ids_plain")));
        CHECK(smollm2().decode(ids) == from_hex(as_string(row.at("decodes_to_hex"))));
    }
}

TEST_CASE("tokenizer: SmolLM2 drops exactly the 21 bytes it has no token for") {
    std::vector<int> dropped;
    for (int b = 0; b < 256; ++b) {
        if (smollm2().encode(std::string(1, static_cast<char>(b))).empty()) dropped.push_back(b);
    }
    CHECK(dropped == boost::json::value_to<std::vector<int>>(expected().at("bytes_without_token")));
}

TEST_CASE("tokenizer: no text of a SmolLM2 special token yields its id from untrusted bytes") {
    int specials = 0;
    for (Token token = 0; token < smollm2().vocab_size(); ++token) {
        if (!smollm2().is_special(token)) continue;
        ++specials;
        const std::string text(smollm2().token_bytes(token));
        CAPTURE(text);
        CHECK(smollm2().encode_with_specials(text) == Tokens{token});
        for (const Token id : smollm2().encode(text)) CHECK_FALSE(smollm2().is_special(id));
    }
    CHECK(specials >= 17);
}

TEST_SUITE_END();
