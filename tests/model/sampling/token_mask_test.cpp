#include "model/sampling/token_mask.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "model/error.h"
#include "tests/support/byte_vocabulary.h"

using namespace skein::model;
using namespace skein::test;
using Builder = Grammar::Builder;

namespace {

std::shared_ptr<const Grammar> call_grammar() {
    Builder b;
    const auto text = b.json_string({.max_chars = 6});
    const auto number = b.json_number({.integer = true, .minimum = 0, .maximum = 100});
    const auto arguments = b.json_object({{"the", text, true}, {"then", number, false}});
    return b.finish(b.sequence({b.literal("{\"name\":"), b.choice({"\"shell\"", "\"she\""}),
                                b.literal(",\"arguments\":"), arguments, b.literal("}")}));
}

/// The definition: a token is allowed when the grammar takes its bytes.
Tokens slow_allowed(const Tokenizer& tokenizer, const GrammarState& state) {
    Tokens tokens;
    for (Token token = 0; token < tokenizer.vocab_size(); ++token) {
        if (!tokenizer.is_special(token) && state.accepts(tokenizer.token_bytes(token))) {
            tokens.push_back(token);
        }
    }
    return tokens;
}

Tokens list(std::span<const Token> tokens) {
    return {tokens.begin(), tokens.end()};
}

}  // namespace

TEST_SUITE_BEGIN("model/sampling/token_mask");

TEST_CASE("token_mask: the index keeps plain tokens apart, ordered by characters") {
    const Tokenizer tokenizer(byte_vocabulary());
    const TokenIndex index(tokenizer);
    const auto one = list(index.plain_up_to(1));
    CHECK(std::find(one.begin(), one.end(), Token{'a'}) != one.end());
    CHECK(std::find(one.begin(), one.end(), Token{'"'}) == one.end());
    CHECK(std::find(one.begin(), one.end(), Token{0xC3}) == one.end());
    CHECK(index.plain_characters(261) == 4);  // " the"
    CHECK(index.plain_characters(kImEnd) == 0);
    CHECK(index.plain_up_to(0).empty());
    CHECK(index.plain_up_to(3).size() < index.plain_up_to(4).size());
    CHECK(index.plain_up_to(4).size() == index.plain_up_to(1000).size());
}

TEST_CASE("token_mask: allowed tokens are those whose bytes the grammar takes, at every step") {
    const Tokenizer tokenizer(byte_vocabulary());
    const auto index = std::make_shared<const TokenIndex>(tokenizer);
    std::mt19937 random(6);
    for (int walk = 0; walk < 30; ++walk) {
        ConstrainedDecoder decoder(index, call_grammar());
        GrammarState state(call_grammar());
        while (!decoder.done()) {
            const Tokens allowed = list(decoder.allowed());
            REQUIRE(allowed == slow_allowed(tokenizer, state));
            REQUIRE_FALSE(allowed.empty());
            const Token token = allowed[random() % allowed.size()];
            CHECK(decoder.allows(token));
            decoder.advance(token);
            REQUIRE(state.advance(tokenizer.token_bytes(token)));
        }
        CHECK(state.complete());
        CHECK(decoder.allowed().empty());
    }
}

TEST_CASE(
    "token_mask: forced tokens are the tokenizer's own, held back where text could join them") {
    const Tokenizer tokenizer(byte_vocabulary());
    ConstrainedDecoder decoder(tokenizer, call_grammar());
    const Tokens forced = decoder.forced();
    for (const Token token : forced) {
        CHECK(decoder.allows(token));
        decoder.advance(token);
    }
    CHECK(decoder.forced().empty());
    // `{"name":"she` must come; its last token could be longer ("shell"), so it is not forced.
    const Tokens whole = tokenizer.encode("{\"name\":\"she");
    CHECK(forced == Tokens(whole.begin(), whole.end() - 1));

    Builder b;
    ConstrainedDecoder end(tokenizer, b.finish(b.literal("ok")));
    decoder = std::move(end);
    CHECK(decoder.forced() == Tokens{'o', 'k'});  // nothing can follow, so nothing can join the k
    decoder.advance('o');
    decoder.advance('k');
    CHECK(decoder.forced().empty());
    CHECK(decoder.done());
}

TEST_CASE("token_mask: a complete text that could go on may be ended by an end-of-turn token") {
    const Tokenizer tokenizer(byte_vocabulary());
    Builder b;
    ConstrainedDecoder decoder(tokenizer, b.finish(b.json_number({.integer = true})));
    CHECK_FALSE(decoder.allows(kImEnd));
    CHECK_THROWS_AS(decoder.advance(kImEnd), Error);
    decoder.advance('7');
    CHECK(decoder.complete());
    CHECK_FALSE(decoder.done());
    CHECK(decoder.allows(kImEnd));
    CHECK_FALSE(decoder.allows(kEndOfText));
    decoder.advance(kImEnd);
    CHECK(decoder.done());
    CHECK(decoder.allowed().empty());
    CHECK_THROWS_AS(decoder.advance('7'), Error);
}

TEST_CASE("token_mask: a token that is not allowed is refused and changes nothing") {
    const Tokenizer tokenizer(byte_vocabulary());
    ConstrainedDecoder decoder(tokenizer, call_grammar());
    for (const Token token : {Token{'x'}, kImStart, Token{-1}, Token{100000}}) {
        CHECK_FALSE(decoder.allows(token));
        CHECK_THROWS_WITH_AS(decoder.advance(token), doctest::Contains("not allowed here"), Error);
    }
    CHECK(decoder.allows('{'));
}

TEST_CASE("token_mask: a vocabulary without the bytes a grammar needs is an error") {
    Vocabulary v = byte_vocabulary();
    v.types['#'] = TokenType::unused;
    const Tokenizer tokenizer(v);
    Builder b;
    ConstrainedDecoder decoder(tokenizer, b.finish(b.literal("a#")));
    CHECK(decoder.forced().empty());
    decoder.advance('a');
    CHECK_THROWS_WITH_AS(decoder.allowed(), doctest::Contains("no token for any legal"), Error);
}

TEST_CASE("token_mask: the filter draws the same token as the list") {
    const Tokenizer tokenizer(byte_vocabulary());
    ConstrainedDecoder decoder(tokenizer, call_grammar());
    std::vector<float> logits(static_cast<std::size_t>(tokenizer.vocab_size()));
    std::mt19937 random(8);
    for (std::uint64_t position = 0; !decoder.done(); ++position) {
        for (float& x : logits) x = static_cast<float>(random() % 1000) / 100.0F;
        const Token token = sample_among(logits, {}, position, decoder.allowed()).token;
        CHECK(sample(logits, {}, position, decoder.filter()).token == token);
        decoder.advance(token);
    }
}

TEST_SUITE_END();
