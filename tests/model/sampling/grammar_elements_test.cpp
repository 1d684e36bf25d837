// Control tokens, raw text and elements: the parts of a grammar that native tool calls are made of.

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "model/error.h"
#include "model/sampling/grammar.h"
#include "model/sampling/token_mask.h"
#include "tests/support/byte_vocabulary.h"
#include "tests/support/random_schema.h"

using namespace skein::model;
using namespace skein::test;
using Builder = Grammar::Builder;

namespace {

constexpr Token kTag = kImStart;  // a control token that stands in front of every tag

/// Every `<` of the text comes after the control token.
bool feed(GrammarState& state, std::string_view text) {
    for (const char c : text) {
        if (c == '<') {
            if (!state.advance_token(kTag) || !state.advance("<")) return false;
        } else if (!state.advance(std::string_view(&c, 1))) {
            return false;
        }
    }
    return true;
}

bool matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
    GrammarState state(grammar);
    return feed(state, text) && state.complete();
}

std::shared_ptr<const Grammar> call() {
    Builder b;
    const auto text = b.raw_text({.min_chars = 0, .max_chars = 5});
    const auto number = b.json_number({.integer = true});
    const auto inner = b.elements(kTag, {{"a", text, true}, {"b", number, false}});
    const auto outer = b.elements(kTag, {{"text", text, true}, {"in", inner, false}});
    return b.finish(b.sequence({outer, b.token(kTag), b.literal("</call>")}));
}

}  // namespace

TEST_SUITE_BEGIN("model/sampling/grammar");

TEST_CASE("grammar: elements come in any order, each once, and required ones must come") {
    for (const char* text : {"<text>x</text></call>", "<text></text></call>",
                             "<in><a>1</a></in><text>ab</text></call>",
                             "<text>ab</text><in><b>7</b><a></a></in></call>"}) {
        CAPTURE(text);
        CHECK(matches(call(), text));
    }
    for (const char* text :
         {"</call>", "<text>x</text>", "<text>x</text><text>y</text></call>", "<text>x</in></call>",
          "<text>x</text><in></in></call>", "<other>x</other></call>", "<text>sixsix</text></call>",
          "<text>x</text> </call>", "<text>x</text><in><a>1</a><b>x</b></in></call>"}) {
        CAPTURE(text);
        CHECK_FALSE(matches(call(), text));
    }
}

TEST_CASE("grammar: a control token is no text, and text is no control token") {
    GrammarState state(call());
    CHECK_FALSE(state.advance("<text>"));
    CHECK(state.forced().empty());
    CHECK(state.forced_token() == kTag);
    CHECK_FALSE(state.accepts_token(kImEnd));
    REQUIRE(feed(state, "<text>"));
    // Any characters stay text, the spelling of the closing tag included.
    CHECK(state.accepts("</te"));
    CHECK(state.accepts_token(kTag));
    CHECK_FALSE(state.forced_token());
    CHECK(state.takes_bytes());
    CHECK_FALSE(state.complete());
    REQUIRE(feed(state, "</text>"));
    CHECK_FALSE(state.takes_bytes());
    CHECK_FALSE(state.dead_end());
    REQUIRE(feed(state, "</call>"));
    CHECK(state.complete());
    CHECK(state.dead_end());
}

TEST_CASE("grammar: raw text is whole UTF-8 of a limited number of characters") {
    Builder b;
    const auto grammar =
        b.finish(b.sequence({b.raw_text({.min_chars = 2, .max_chars = 3}), b.token(kTag)}));
    const auto ends_after = [&](std::string_view text) {
        GrammarState state(grammar);
        return state.advance(text) && state.accepts_token(kTag);
    };
    CHECK_FALSE(ends_after("a"));
    CHECK(ends_after("a\n"));
    CHECK(ends_after("\xF0\x9F\x98\x80\xC3\xA9\""));
    CHECK_FALSE(ends_after("abc\xC3"));
    CHECK_FALSE(GrammarState(grammar).accepts("abcd"));
    CHECK_FALSE(GrammarState(grammar).accepts("a\xFF"));
    CHECK_FALSE(GrammarState(grammar).accepts("\xC0\xAF"));
    CHECK_FALSE(ends_after("ab\xE4\xB8"));
}

TEST_CASE("grammar: names that no element can have and impossible texts are refused") {
    for (const char* name : {"", "/a", "a>", "<", "a\xFF"}) {
        CAPTURE(name);
        Builder b;
        const auto value = b.raw_text({});
        CHECK_THROWS_AS(b.elements(kTag, {{name, value, true}}), Error);
    }
    Builder b;
    const auto value = b.raw_text({});
    CHECK_THROWS_WITH_AS(b.elements(kTag, {{"a", value, true}, {"a", value, false}}),
                         doctest::Contains("two members are named 'a'"), Error);
    CHECK_THROWS_AS(b.token(-1), Error);
    CHECK_THROWS_AS(b.raw_text({.min_chars = 2, .max_chars = 1}), Error);
}

TEST_CASE("token_mask: a control token of the grammar is allowed by id, every other one is not") {
    const Tokenizer tokenizer(byte_vocabulary());
    ConstrainedDecoder decoder(tokenizer, call());
    CHECK(std::vector<Token>(decoder.allowed().begin(), decoder.allowed().end()) ==
          std::vector<Token>{kTag});
    // The tag and its `<` must come; whether text or in follows is open.
    CHECK(decoder.forced() == Tokens{kTag});
    decoder.advance(kTag);
    decoder.advance('<');
    for (const char c : std::string("text>ab")) decoder.advance(static_cast<Token>(c));
    CHECK(decoder.allows(kTag));
    CHECK(decoder.allows('<'));
    CHECK_FALSE(decoder.allows(kImEnd));
    CHECK_THROWS_AS(decoder.advance(kImEnd), Error);
    decoder.advance(kTag);
    // Nothing but tokens can follow the closing tag, so its last token is forced too.
    Tokens closing = tokenizer.encode("</text>");
    closing.push_back(kTag);
    CHECK(decoder.forced() == closing);
}

TEST_CASE("token_mask: sampled elements always end, whatever the logits are") {
    const Tokenizer tokenizer(byte_vocabulary());
    const auto index = std::make_shared<const TokenIndex>(tokenizer);
    std::vector<float> logits(static_cast<std::size_t>(tokenizer.vocab_size()));
    for (unsigned seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        ConstrainedDecoder decoder(index, call());
        const auto logits_of = [&](std::span<const Token>) -> std::span<const float> {
            for (float& x : logits) x = static_cast<float>(random() % 6000) / 1000.0F;
            return logits;
        };
        const Tokens tokens =
            sample_sentence(decoder, {.seed = seed}, seed % 2 == 0, 10'000, logits_of);
        REQUIRE(decoder.done());
        GrammarState state(call());
        for (const Token token : tokens) {
            CHECK((token == kTag ? state.advance_token(token)
                                 : state.advance(tokenizer.token_bytes(token))));
        }
        CHECK(state.complete());
    }
}

TEST_SUITE_END();
