#include "agent/llm/local_model.h"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/json.hpp>
#include <cmath>
#include <thread>

#include "agent/chat/chat_format.h"
#include "model/error.h"
#include "tests/agent/agent_fixture.h"
#include "tests/support/model_path.h"
#include "tools/schema.h"

using namespace skein::agent;
using skein::test::run_now;
namespace asio = boost::asio;
namespace model = skein::model;
namespace tools = skein::tools;

namespace {

model::EngineOptions tiny_options() {
    model::EngineOptions options;
    options.threads = 1;
    return options;
}

/// A random llama of 200 KB weights; its vocabulary has bytes and no ChatML.
std::shared_ptr<const model::Engine> tiny() {
    static const auto engine = model::Engine::load(
        std::string(SKEIN_TEST_DATA) + "/fixtures/llama-tiny/model-f32.gguf", tiny_options());
    return engine;
}

CompletionRequest request_for(const Tokens& prompt, int max_tokens, float temperature = 0,
                              std::uint64_t seed = 0) {
    CompletionRequest request;
    request.prompt = prompt;
    request.max_tokens = max_tokens;
    request.sampling.temperature = temperature;
    request.sampling.seed = seed;
    return request;
}

Completion ask(LocalModel& local, const Tokens& prompt, int max_tokens, float temperature = 0,
               std::uint64_t seed = 0) {
    return run_now(local.complete(request_for(prompt, max_tokens, temperature, seed)));
}

Tokens join(Tokens head, const Tokens& tail) {
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
}

const Tokens kPrompt{5, 17, 200, 3, 99, 42};

}  // namespace

TEST_SUITE("agent/llm/local_model") {
    TEST_CASE("local_model: continues with what the engine itself gives, with its raw logprobs") {
        LocalModel local(tiny());
        const Completion reply = ask(local, kPrompt, 20);
        REQUIRE(reply.tokens.size() == 20);
        CHECK(reply.finish == FinishReason::length);
        CHECK(reply.origins == std::vector<Origin>(20, Origin::sampled));
        CHECK(reply.rng_position == kPrompt.size());
        model::Session session = tiny()->new_session();
        session.sync(kPrompt);
        for (std::size_t i = 0; i < reply.tokens.size(); ++i) {
            CAPTURE(i);
            const auto best = model::sample(session.logits(), {.temperature = 0}, 0);
            CHECK(reply.tokens[i] == best.token);
            CHECK(reply.logprobs[i] == best.logprob);
            session.decode(reply.tokens[i]);
        }
    }

    TEST_CASE("local_model: a prompt that goes on needs only its new tokens evaluated") {
        LocalModel local(tiny());
        const Completion first = ask(local, kPrompt, 10);
        CHECK(first.reused_tokens == 0);
        CHECK(first.evaluated_tokens == static_cast<std::int64_t>(kPrompt.size()) + 9);
        const Completion second = ask(local, join(join(kPrompt, first.tokens), {7, 8}), 1);
        CHECK(second.reused_tokens == static_cast<std::int64_t>(kPrompt.size()) + 9);
        CHECK(second.evaluated_tokens == 3);
    }

    TEST_CASE("local_model: J03, equal seeds draw equal tokens, whatever was asked in between") {
        LocalModel local(tiny());
        const Completion one = ask(local, kPrompt, 24, 12.0F, 1);
        const Completion other = ask(local, kPrompt, 24, 12.0F, 2);
        ask(local, {9, 9, 9}, 3);
        const Completion again = ask(local, kPrompt, 24, 12.0F, 1);
        CHECK(one.tokens == again.tokens);
        CHECK(one.logprobs == again.logprobs);
        CHECK(one.tokens != other.tokens);
        // Half of it, then the rest: the draw depends on the position in the log.
        const Completion half = ask(local, kPrompt, 12, 12.0F, 1);
        const Completion rest = ask(local, join(kPrompt, half.tokens), 12, 12.0F, 1);
        CHECK(join(half.tokens, rest.tokens) == one.tokens);
    }

    TEST_CASE("local_model: a stop token is the last token of the reply") {
        LocalModel local(tiny());
        const Completion free = ask(local, kPrompt, 10);
        CompletionRequest request = request_for(kPrompt, 10);
        request.stop_tokens = {free.tokens[3]};
        const Completion stopped = run_now(local.complete(std::move(request)));
        const auto first = std::ranges::find(free.tokens, free.tokens[3]);
        CHECK(stopped.tokens == Tokens(free.tokens.begin(), first + 1));
        CHECK(stopped.finish == FinishReason::stop);
    }

    TEST_CASE("local_model: a grammar is kept, forced tokens are named and have no logprob") {
        LocalModel local(tiny());
        model::Grammar::Builder builder;
        const auto grammar = builder.finish(builder.sequence(
            {builder.literal("{\"move\":"), builder.choice({"\"tile 8\"", "\"unroll 4\""}),
             builder.literal("}")}));
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            CompletionRequest request = request_for(kPrompt, 100, 1.0F, seed);
            request.grammar = grammar;
            const Completion reply = run_now(local.complete(std::move(request)));
            CHECK(reply.finish == FinishReason::grammar_complete);
            const std::string text = local.tokenizer().decode(reply.tokens);
            CHECK((text == "{\"move\":\"tile 8\"}" || text == "{\"move\":\"unroll 4\"}"));
            CHECK(std::ranges::count(reply.origins, Origin::forced) > 0);
            CHECK(std::ranges::count(reply.origins, Origin::sampled) > 0);
            for (std::size_t i = 0; i < reply.tokens.size(); ++i) {
                CHECK(std::isnan(reply.logprobs[i]) == (reply.origins[i] == Origin::forced));
                if (reply.origins[i] == Origin::sampled) CHECK(reply.logprobs[i] <= 0);
            }
        }
        CompletionRequest cut = request_for(kPrompt, 3);
        cut.grammar = grammar;
        CHECK(run_now(local.complete(std::move(cut))).finish == FinishReason::length);
    }

    TEST_CASE("local_model: a forced stretch is one evaluation with the bits of single steps") {
        LocalModel local(tiny());
        model::Grammar::Builder builder;
        const auto grammar = builder.finish(builder.sequence(
            {builder.literal("{\"a rather long opening\":"), builder.choice({"1", "2", "30"}),
             builder.literal(",\"and a closing\":"), builder.choice({"x", "y"})}));
        CompletionRequest request = request_for(kPrompt, 200, 1.0F, 3);
        request.grammar = grammar;
        const Completion reply = run_now(local.complete(std::move(request)));
        REQUIRE(reply.finish == FinishReason::grammar_complete);
        CHECK(std::ranges::count(reply.origins, Origin::forced) > 8);
        model::Session session = tiny()->new_session();
        session.sync(kPrompt);
        std::size_t last_sampled = 0;
        for (std::size_t i = 0; i < reply.tokens.size(); ++i) {
            if (reply.origins[i] == Origin::sampled) {
                CAPTURE(i);
                CHECK(reply.logprobs[i] == model::logprob_of(session.logits(), reply.tokens[i]));
                last_sampled = i;
            }
            session.decode(reply.tokens[i]);
        }
        // Nothing behind the last draw had to be evaluated.
        CHECK(reply.evaluated_tokens ==
              static_cast<std::int64_t>(kPrompt.size() + last_sampled));
    }

    TEST_CASE("local_model: thinking that used up its tokens is closed, and the reply goes on") {
        LocalModel local(tiny());
        const Completion free = ask(local, kPrompt, 12);
        const auto limited = [&](bool opened, Token open, int max_tokens, int reply_tokens) {
            CompletionRequest request = request_for(kPrompt, reply_tokens);
            request.thinking = {{open, 7}, opened, max_tokens};
            return run_now(local.complete(std::move(request)));
        };
        REQUIRE(std::ranges::find(free.tokens, 7) == free.tokens.end());
        // The prompt opened it: four tokens, then the closing one, then the model again.
        const Completion closed = limited(true, 8, 4, 12);
        REQUIRE(closed.tokens.size() == 12);
        CHECK(std::equal(free.tokens.begin(), free.tokens.begin() + 4, closed.tokens.begin()));
        CHECK(closed.tokens[4] == 7);
        CHECK(closed.origins[4] == Origin::forced);
        CHECK(std::isnan(closed.logprobs[4]));
        CHECK(std::ranges::count(closed.origins, Origin::forced) == 1);
        Tokens head(closed.tokens.begin(), closed.tokens.begin() + 5);
        CHECK(ask(local, join(kPrompt, head), 7).tokens ==
              Tokens(closed.tokens.begin() + 5, closed.tokens.end()));
        // The model opens it with its second token: counted from there.
        const auto second = std::ranges::find(free.tokens, free.tokens[1]) - free.tokens.begin();
        const Completion later = limited(false, free.tokens[1], 2, 12);
        CHECK(later.tokens[static_cast<std::size_t>(second) + 3] == 7);
        CHECK(limited(false, 8, 0, 12).tokens == free.tokens);
    }

    TEST_CASE("local_model: an M3 of random weights thinks within its budget, then calls a tool") {
        const auto engine = model::Engine::load(
            std::string(SKEIN_TEST_DATA) + "/fixtures/m3-tiny/model-f32.gguf", tiny_options());
        LocalModel local(engine);
        REQUIRE(local.chat_format() == "minimax-m3");
        const auto format = make_chat_format(local.chat_format(), local.tokenizer());
        const tools::ToolSpec spec{
            "count", "",
            boost::json::parse(R"({"type": "object", "required": ["n"], "properties": {
                "n": {"type": "integer", "minimum": 0, "maximum": 99},
                "why": {"type": "string", "maxLength": 8}}})").get_object(),
            tools::Effect::pure};
        const tools::ToolSpec* const specs[] = {&spec};
        Tokens prompt;
        for (const Segment& segment : format->open_reply(ThinkingMode::enabled)) {
            prompt.insert(prompt.end(), segment.tokens.begin(), segment.tokens.end());
        }
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            CAPTURE(seed);
            CompletionRequest request = request_for(prompt, 400, 1.0F, seed);
            request.stop_tokens = format->stop_tokens();
            request.grammar = format->call_grammar(specs, ThinkingMode::enabled);
            request.thinking = {*format->thinking_tags(), true, 16};
            const Completion reply = run_now(local.complete(std::move(request)));
            REQUIRE(reply.error == "");
            REQUIRE(reply.finish == FinishReason::grammar_complete);
            const auto close =
                std::ranges::find(reply.tokens, format->thinking_tags()->close);
            // A character that is not whole yet is finished first.
            CHECK(close - reply.tokens.begin() <= 16 + 3);
            const ParsedReply parsed = format->parse(reply.tokens, {specs, ThinkingMode::enabled});
            REQUIRE(parsed.calls.size() == 1);
            CHECK_FALSE(tools::validate(boost::json::parse(parsed.calls[0].arguments),
                                        spec.parameters));
        }
    }

    TEST_CASE("local_model: the window ends a reply; what cannot be evaluated is an error value") {
        LocalModel local(tiny(), {.max_context = 16});
        CHECK(local.max_context() == 16);
        const Completion full = ask(local, kPrompt, 100);
        CHECK(full.tokens.size() == 10);
        CHECK(full.finish == FinishReason::length);
        CHECK(ask(local, Tokens(17, 1), 1).finish == FinishReason::error);
        CHECK(ask(local, {}, 1).error == "completion: the prompt is empty");
        const Completion bad = ask(local, {1, 100000}, 1);
        CHECK(bad.finish == FinishReason::error);
        CHECK(bad.error.find("100000") != std::string::npos);
        CHECK(ask(local, kPrompt, 10).tokens == full.tokens);
    }

    TEST_CASE("local_model: a cancellation stops within one token and keeps the timeline usable") {
        LocalModel local(tiny());
        const Completion whole = ask(local, kPrompt, 200);
        asio::io_context context;
        asio::cancellation_signal cancel;
        std::atomic<int> seen = 0;
        CompletionRequest request = request_for(kPrompt, 200);
        request.on_token = [&](Token) {
            if (++seen != 3) return;
            // The signal belongs to the executor's thread; the inference thread waits for it.
            std::atomic<bool> done = false;
            asio::post(context, [&] {
                cancel.emit(asio::cancellation_type::terminal);
                done = true;
            });
            while (!done) std::this_thread::yield();
        };
        std::optional<Completion> reply;
        asio::co_spawn(context, local.complete(std::move(request)),
                       asio::bind_cancellation_slot(
                           cancel.slot(), [&](std::exception_ptr, Completion value) {
                               reply = std::move(value);
                           }));
        context.run();
        REQUIRE(reply);
        CHECK(reply->finish == FinishReason::cancelled);
        CHECK(reply->tokens == Tokens(whole.tokens.begin(), whole.tokens.begin() + 3));
        CHECK(reply->logprobs.size() == 3);
        const Completion rest = ask(local, join(kPrompt, reply->tokens), 197);
        CHECK(join(reply->tokens, rest.tokens) == whole.tokens);
    }

    TEST_CASE("local_model: requests of several agents wait for each other and do not mix") {
        LocalModel local(tiny());
        const Tokens other{8, 8, 1};
        const Completion alone = ask(local, kPrompt, 16);
        const Completion other_alone = ask(local, other, 16);
        asio::io_context context;
        std::vector<Completion> replies(6);
        for (std::size_t i = 0; i < replies.size(); ++i) {
            asio::co_spawn(context, local.complete(request_for(i % 2 ? other : kPrompt, 16)),
                           [&, i](std::exception_ptr, Completion value) {
                               replies[i] = std::move(value);
                           });
        }
        context.run();
        for (std::size_t i = 0; i < replies.size(); ++i) {
            CHECK(replies[i].tokens == (i % 2 ? other_alone : alone).tokens);
            CHECK(replies[i].logprobs == (i % 2 ? other_alone : alone).logprobs);
        }
    }

    TEST_CASE("local_model: the chat format is recognised, named, or an error with its remedy") {
        LocalModel unknown(tiny());
        CHECK_THROWS_WITH_AS(unknown.chat_format(), doctest::Contains("name the chat format"),
                             model::Error);
        LocalModel named(tiny(), {.chat_format = "chatml"});
        CHECK(named.chat_format() == "chatml");
        CHECK(named.description().find("llama tiny random") == 0);
        CHECK(named.description().find(tiny()->numerics_version()) != std::string::npos);
    }
}

TEST_SUITE("agent/llm/local_model: SmolLM2") {
    TEST_CASE("local_model: the default model answers and chooses, the same way every time") {
        const auto engine = model::Engine::load(skein::test::model_path());
        const auto once = [&] {
            LocalModel local(engine, {.max_context = 1024});
            CHECK(local.chat_format() == "chatml");
            skein::test::FakeTools fakes;
            fakes.add("choose", {{"move", {{"type", "string"},
                                           {"enum", {"tile 8", "tile 16", "unroll 4", "stop"}}}}},
                      [](const boost::json::object& arguments) {
                          return skein::tools::ToolResult{
                              skein::tools::ToolStatus::ok,
                              "tried " + std::string(arguments.at("move").as_string()), {}};
                      });
            MemoryRecorder recorder;
            AgentConfig config;
            config.instruction = "You choose moves.";
            config.sampling = {.temperature = 1.0F, .seed = 11};
            config.limits.reply_tokens = 64;
            Agent agent(config, local, fakes.registry, recorder);
            agent.say("Choose a move.");
            TurnOptions options;
            options.force_call = {&fakes.registry.find("choose")->spec()};
            for (int turn = 0; turn < 3; ++turn) {
                const auto step = run_now(agent.step(options));
                CHECK(step.finish == FinishReason::grammar_complete);
                REQUIRE(step.results.size() == 1);
                CHECK(step.results[0].second.status == skein::tools::ToolStatus::ok);
            }
            const RunResult result = agent.finish(ExitStatus::finished, "");
            CHECK(result.usage.turns == 3);
            CHECK(result.usage.reused_tokens > result.usage.evaluated_tokens);
            const auto log = agent.log().tokens();
            CHECK(recorded_tokens(recorder, agent.trajectory()) == Tokens(log.begin(), log.end()));
            return Tokens(log.begin(), log.end());
        };
        CHECK(once() == once());
    }
}
