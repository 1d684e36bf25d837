#include "agent/chat/schema_grammar.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <random>

#include "model/error.h"
#include "tests/support/byte_vocabulary.h"
#include "tests/support/random_schema.h"
#include "tools/schema.h"

using namespace skein;
using namespace skein::test;
namespace json = boost::json;

namespace {

std::shared_ptr<const model::Grammar> grammar_of(const json::object& schema) {
    model::Grammar::Builder builder;
    return builder.finish(agent::add_schema(builder, schema));
}

bool matches(const char* schema, std::string_view text) {
    model::GrammarState state(grammar_of(json::parse(schema).get_object()));
    return state.advance(text) && state.complete();
}

}  // namespace

TEST_SUITE_BEGIN("agent/chat/schema_grammar");

TEST_CASE("schema_grammar: texts valid against a schema match, others do not") {
    const char* schema = R"({"type": "object", "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 5},
        "n": {"type": "integer", "minimum": -3, "maximum": 12},
        "tags": {"type": "array", "items": {"enum": ["a", "b", 1]}, "maxItems": 2}},
        "required": ["path"]})";
    for (const char* text :
         {R"({"path":"x"})", R"({"n":-3,"path":"abcde"})",
          R"({"tags":["a",1],"path":"\u00e9","n":12})", R"({"path":"x","tags":[]})"}) {
        CAPTURE(text);
        CHECK(matches(schema, text));
        CHECK_FALSE(tools::validate(json::parse(text), json::parse(schema).get_object()));
    }
    for (const char* text :
         {"{}", R"({"path":""})", R"({"path":"abcdef"})", R"({"path":"x","n":13})",
          R"({"path":"x","path":"y"})", R"({"path":"x","other":1})",
          R"({"path":"x","tags":["a","a","a"]})", R"({ "path":"x"})", "[]",
          R"({"path":"x","n":-0})", R"({"path":"x","n":1.0})", R"({"path":null})"}) {
        CAPTURE(text);
        CHECK_FALSE(matches(schema, text));
    }
}

TEST_CASE("schema_grammar: const, enum with type, free values and objects without properties") {
    CHECK(matches(R"({"const": {"a": [1, null]}})", R"({"a":[1,null]})"));
    CHECK(matches(R"({"enum": ["a", 1, null], "type": "string"})", R"("a")"));
    CHECK_FALSE(matches(R"({"enum": ["a", 1, null], "type": "string"})", "1"));
    CHECK(matches("{}", R"([{"a":[-1.5e-3,"x"]},true])"));
    CHECK(matches(R"({"type": "object"})", R"({"x":{"y":[1]}})"));
    CHECK_FALSE(matches(R"({"type": "object"})", "[1]"));
    CHECK(matches(R"({"type": "object", "additionalProperties": false})", "{}"));
    CHECK_FALSE(matches(R"({"type": "object", "additionalProperties": false})", R"({"a":1})"));
    CHECK(matches(R"({"type": "number", "minimum": 0.1, "maximum": 0.25})", "0.125"));
    CHECK_FALSE(matches(R"({"type": "number", "minimum": 0.1, "maximum": 0.25})", "0.26"));
    CHECK(matches(R"({"minimum": 2.5, "maximum": 3.5, "type": "integer"})", "3"));
}

TEST_CASE("schema_grammar: schemas that cannot be enforced or met are refused by place") {
    const auto refused = [](const char* schema, const char* part) {
        CAPTURE(schema);
        CHECK_THROWS_WITH_AS(grammar_of(json::parse(schema).get_object()), doctest::Contains(part),
                             model::Error);
    };
    refused(R"({"pattern": "a*"})", "\"pattern\" is not enforced");
    refused(R"({"type": "integer", "minimum": 5, "maximum": 4})",
            "no integer lies between 5 and 4");
    refused(R"({"properties": {"a": {"minLength": 5, "maxLength": 4}}})", "/a: minLength is 5");
    refused(R"({"enum": ["a"], "type": "integer"})", "no listed value");
    json::object deep;
    for (int i = 0; i < 32; ++i) deep = json::object{{"items", std::move(deep)}};
    grammar_of(deep);
    deep = json::object{{"items", std::move(deep)}};
    CHECK_THROWS_WITH_AS(grammar_of(deep), doctest::Contains("nested deeper than 32"),
                         model::Error);
}

TEST_CASE("schema_grammar: 1000 texts sampled from random logits parse and validate") {
    const model::Tokenizer tokenizer(byte_vocabulary());
    const auto index = std::make_shared<const model::TokenIndex>(tokenizer);
    std::vector<float> logits(static_cast<std::size_t>(tokenizer.vocab_size()));
    std::size_t total = 0;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        CAPTURE(seed);
        const json::object schema = RandomSchema(seed).arguments();
        REQUIRE_FALSE(tools::check_schema(schema));
        model::ConstrainedDecoder decoder(index, grammar_of(schema));
        std::mt19937 random(static_cast<unsigned>(seed));
        const auto logits_of = [&](std::span<const model::Token>) -> std::span<const float> {
            for (float& x : logits) x = static_cast<float>(random() % 6000) / 1000.0F;
            return logits;
        };
        const model::SamplingParams params{.seed = seed};
        model::Tokens tokens =
            sample_sentence(decoder, params, seed % 2 == 0, 1'000'000, logits_of);
        REQUIRE(decoder.done());
        total += tokens.size();
        while (!tokens.empty() && tokenizer.is_special(tokens.back())) tokens.pop_back();
        const std::string text = tokenizer.decode(tokens);
        CAPTURE(text);
        boost::system::error_code error;
        const json::value value = json::parse(text, error);
        REQUIRE_FALSE(error.failed());
        const auto violation = tools::validate(value, schema);
        CHECK_MESSAGE(!violation, json::serialize(schema), " ", violation.value_or(""));
    }
    MESSAGE("seeds 1..1000, tokens sampled: " << total);
}

TEST_SUITE_END();
