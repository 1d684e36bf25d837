// Tool calls as the default model itself writes them: its logits, temperature 1, a random schema a
// call. Lengths are bounded and calls advance together so that a thousand take a minute or two;
// schema_grammar_test samples the unbounded schemas from random logits.

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
                                       number_or(schema, "minLength", 0) + 4);
    }
    if (json::value* items = schema.if_contains("items")) {
        bound(items->as_object());
        schema["maxItems"] = number_or(schema, "minItems", 0) + 1;
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

/// One call on its way: a timeline, the grammar's cursor, and what was written so far.
struct Lane {
    model::Session session;
    model::ConstrainedDecoder decoder;
    json::object schema;
    std::uint64_t seed;
    model::Tokens reply, forced{};

    /// The next token of the reply, drawn from the model's logits unless the grammar leaves one.
    model::Token next(std::size_t& drawn) {
        if (forced.empty()) {
            forced = decoder.forced();
            std::ranges::reverse(forced);
        }
        model::Token token = 0;
        if (forced.empty()) {
            ++drawn;
            token = model::sample_among(session.logits(), {.temperature = 1, .seed = seed},
                                        reply.size(), decoder.allowed())
                        .token;
        } else {
            token = forced.back();
            forced.pop_back();
        }
        decoder.advance(token);
        reply.push_back(token);
        return token;
    }
};

/// Calls of the tool `act`, whose schema depends on the seed.
class Calls {
  public:
    explicit Calls(const model::Engine& engine)
        : index_(std::make_shared<const model::TokenIndex>(engine.tokenizer())),
          format_(agent::make_chat_format("chatml", engine.tokenizer())),
          prompt_(opening(*format_)),
          opened_(engine.new_session({.max_context = 4096})) {}

    /// What must come first comes for all calls at once: evaluated for the first, shared by all.
    Lane begin(std::uint64_t seed) {
        json::object schema = RandomSchema(seed).arguments(1);
        bound(schema);
        REQUIRE_FALSE(tools::check_schema(schema));
        const tools::ToolSpec spec{"act", "Acts.", schema, tools::Effect::reads};
        const tools::ToolSpec* const offered[] = {&spec};
        model::ConstrainedDecoder decoder(index_, format_->call_grammar(offered));
        const model::Tokens head = decoder.forced();
        model::Tokens tokens = prompt_;
        for (const model::Token token : head) {
            decoder.advance(token);
            tokens.push_back(token);
        }
        opened_.sync(tokens);
        return {opened_.fork(), std::move(decoder), std::move(schema), seed, head};
    }

    void check(const Lane& lane) const {
        CAPTURE(lane.seed);
        const agent::ParsedReply parsed = format_->parse(lane.reply);
        CHECK(parsed.malformed.empty());
        REQUIRE(parsed.calls.size() == 1);
        CHECK(parsed.calls[0].name == "act");
        CAPTURE(parsed.calls[0].arguments);
        const auto arguments = tools::parse_arguments(parsed.calls[0].arguments);
        CHECK(arguments.error == "");
        REQUIRE(arguments.object);
        CHECK(tools::validate(*arguments.object, lane.schema).value_or("valid") == "valid");
    }

  private:
    std::shared_ptr<const model::TokenIndex> index_;
    std::unique_ptr<agent::ChatFormat> format_;
    model::Tokens prompt_;
    model::Session opened_;
};

}  // namespace

TEST_SUITE("agent/llm/constrained_calls") {
    TEST_CASE("constrained_calls: 1000 calls sampled from the default model parse and validate") {
        constexpr std::size_t kLanes = 32, kLongest = 2000;
        const auto engine = model::Engine::load(model_path());
        Calls calls(*engine);
        std::vector<Lane> lanes;
        std::uint64_t begun = 0, ended = 0;
        std::size_t total = 0, drawn = 0;
        while (ended < kCalls) {
            while (lanes.size() < kLanes && begun < kCalls) lanes.push_back(calls.begin(++begun));
            std::erase_if(lanes, [&](const Lane& lane) {
                if (!lane.decoder.done()) return false;
                calls.check(lane);
                total += lane.reply.size();
                ++ended;
                return true;
            });
            if (lanes.empty()) continue;
            std::vector<model::Session*> together;
            model::Tokens next;
            for (Lane& lane : lanes) {
                next.push_back(lane.next(drawn));
                together.push_back(&lane.session);
                REQUIRE(lane.reply.size() < kLongest);
            }
            model::decode_together(together, next);
        }
        MESSAGE(kCalls << " calls of " << total << " tokens, " << drawn << " of them drawn");
    }
}
