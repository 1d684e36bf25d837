// Tool calls as the default model itself writes them: its logits, temperature 1, a random schema a
// call. Lengths are bounded so that a thousand calls take a minute or two; schema_grammar_test
// samples the unbounded schemas from random logits.

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "agent/chat/chat_format.h"
#include "model/engine.h"
#include "model/session.h"
#include "tests/support/model_path.h"
#include "tests/support/random_schema.h"
#include "tools/json_arguments.h"
#include "tools/schema.h"

using namespace skein;
using namespace skein::test;
namespace json = boost::json;

namespace {

constexpr std::uint64_t kCalls = 1000;

std::int64_t number_or(const json::object& object, const char* key, std::int64_t otherwise) {
    const json::value* value = object.if_contains(key);
    return value == nullptr ? otherwise : value->as_int64();
}

/// Strings of a few characters, lists of a few items, objects and values of a declared shape.
void bound(json::object& schema) {
    if (schema.empty()) schema["type"] = "boolean";
    if (schema.contains("type") && schema["type"] == "string" && !schema.contains("enum")) {
        schema["maxLength"] = std::min(number_or(schema, "maxLength", INT64_MAX),
                                       number_or(schema, "minLength", 0) + 8);
    }
    if (json::value* items = schema.if_contains("items")) {
        bound(items->as_object());
        schema["maxItems"] = number_or(schema, "minItems", 0) + 2;
    }
    if (json::value* properties = schema.if_contains("properties")) {
        for (auto& member : properties->as_object()) bound(member.value().as_object());
        schema["additionalProperties"] = false;
    }
}

model::Tokens opening(const agent::ChatFormat& format) {
    model::Tokens tokens;
    const auto append = [&](const std::vector<agent::Segment>& segments) {
        for (const agent::Segment& segment : segments) {
            tokens.insert(tokens.end(), segment.tokens.begin(), segment.tokens.end());
        }
    };
    append(format.render_system("You call the tool.", {}));
    agent::Message user;
    user.role = agent::Role::user;
    user.text = "Call it with values you like.";
    append(format.render(user));
    append(format.open_reply());
    return tokens;
}

}  // namespace

TEST_SUITE("agent/llm/constrained_calls") {
    TEST_CASE("constrained_calls: 1000 calls sampled from the default model parse and validate") {
        const auto engine = model::Engine::load(model_path());
        const model::Tokenizer& tokenizer = engine->tokenizer();
        const auto index = std::make_shared<const model::TokenIndex>(tokenizer);
        const auto format = agent::make_chat_format("chatml", tokenizer);
        const model::Tokens prompt = opening(*format);
        model::Session session = engine->new_session({.max_context = 4096});
        std::size_t total = 0, evaluated = 0, drawn = 0, right = 0;
        for (std::uint64_t seed = 1; seed <= kCalls; ++seed) {
            CAPTURE(seed);
            json::object schema = RandomSchema(seed).arguments(1);
            bound(schema);
            REQUIRE_FALSE(tools::check_schema(schema));
            const tools::ToolSpec spec{"act", "Acts.", schema, tools::Effect::reads};
            const tools::ToolSpec* const offered[] = {&spec};
            model::ConstrainedDecoder decoder(index, format->call_grammar(offered));
            const auto logits_of = [&](std::span<const model::Token> reply) {
                model::Tokens all = prompt;
                all.insert(all.end(), reply.begin(), reply.end());
                evaluated += static_cast<std::size_t>(session.sync(all).evaluated);
                ++drawn;
                return session.logits();
            };
            const model::Tokens reply =
                sample_sentence(decoder, {.temperature = 1, .seed = seed}, true, 2000, logits_of);
            REQUIRE(decoder.done());
            total += reply.size();
            const agent::ParsedReply parsed = format->parse(reply);
            CAPTURE(tokenizer.decode(reply));
            CHECK(parsed.malformed.empty());
            REQUIRE(parsed.calls.size() == 1);
            CHECK(parsed.calls[0].name == "act");
            const auto arguments = tools::parse_arguments(parsed.calls[0].arguments);
            CHECK(arguments.error == "");
            REQUIRE(arguments.object);
            const auto violation = tools::validate(*arguments.object, schema);
            CHECK_FALSE(violation);
            right += violation ? 0 : 1;
        }
        CHECK(right == kCalls);
        MESSAGE(total << " tokens in " << kCalls << " calls, " << drawn << " of them drawn, "
                      << evaluated << " evaluated");
    }
}
