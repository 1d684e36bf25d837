#include "agent/llm/scripted_model.h"

#include <doctest/doctest.h>

#include "model/error.h"
#include "tests/agent/agent_fixture.h"

using namespace skein::agent;
using skein::test::kImEnd;
using skein::test::run_now;
namespace model = skein::model;

namespace {

Completion ask(ScriptedModel& model, const Tokens& prompt, int max_tokens = 100,
               std::shared_ptr<const model::Grammar> grammar = nullptr) {
    CompletionRequest request;
    request.prompt = prompt;
    request.max_tokens = max_tokens;
    request.stop_tokens = {kImEnd};
    request.grammar = std::move(grammar);
    return run_now(model.complete(std::move(request)));
}

}  // namespace

TEST_SUITE("agent/llm/scripted_model") {
    TEST_CASE("scripted_model: plays its replies in order, each with its end of turn") {
        ScriptedModel model(skein::test::byte_tokenizer(),
                            std::vector<ScriptedReply>{{.text = "Hi"}, {.tokens = {7}}});
        const Completion first = ask(model, {1});
        CHECK(first.tokens == Tokens{'H', 'i', kImEnd});
        CHECK(first.finish == FinishReason::stop);
        CHECK(first.logprobs.size() == 3);
        CHECK(first.origins == std::vector<Origin>(3, Origin::sampled));
        CHECK(first.rng_position == 1);
        CHECK(first.evaluated_tokens == 1);
        const Completion second = ask(model, {1, 'H', 'i', kImEnd, 9});
        CHECK(second.tokens == Tokens{7});
        CHECK(second.finish == FinishReason::length);
        CHECK(second.reused_tokens == 4);
        CHECK(second.evaluated_tokens == 1);
        CHECK_THROWS_WITH_AS(ask(model, {1, 'H', 'i', kImEnd, 9, 7, 9}),
                             doctest::Contains("only 2 replies"), model::Error);
        CHECK(model.replies_given() == 2);
    }

    TEST_CASE("scripted_model: the length limit cuts exactly where a model would stop") {
        for (int limit = 1; limit <= 4; ++limit) {
            CAPTURE(limit);
            ScriptedModel model(skein::test::byte_tokenizer(),
                                std::vector<ScriptedReply>{{.text = "abc"}});
            const Completion reply = ask(model, {1}, limit);
            CHECK(static_cast<int>(reply.tokens.size()) == limit);
            CHECK(reply.finish == (limit == 4 ? FinishReason::stop : FinishReason::length));
        }
    }

    TEST_CASE("scripted_model: the window ends a reply too; a prompt that fills it is refused") {
        ScriptedModel model(skein::test::byte_tokenizer(),
                            std::vector<ScriptedReply>{{.text = "abcdef"}}, {.max_context = 5});
        const Completion reply = ask(model, {1, 2});
        CHECK(reply.tokens == Tokens{'a', 'b', 'c'});
        CHECK(reply.finish == FinishReason::length);
        CHECK_THROWS_AS(ask(model, {1, 2, 'a', 'b', 'c'}), model::Error);
    }

    TEST_CASE("scripted_model: nothing follows a stop token inside the script") {
        ScriptedModel model(skein::test::byte_tokenizer(),
                            std::vector<ScriptedReply>{{.text = "a<|im_end|>b"}});
        CHECK(ask(model, {1}).tokens == Tokens{'a', kImEnd});
    }

    TEST_CASE("scripted_model: a prompt that rewrites what was seen is refused") {
        ScriptedModel model(skein::test::byte_tokenizer(),
                            std::vector<ScriptedReply>{{.text = "a"}, {.text = "b"}});
        ask(model, {1, 2});
        CHECK_THROWS_WITH_AS(ask(model, {1, 3, 'a', kImEnd, 4}),
                             doctest::Contains("may only grow"), model::Error);
        CHECK_THROWS_AS(ask(model, {1, 2}), model::Error);
        CHECK(ask(model, {1, 2, 'a', kImEnd}).tokens == Tokens{'b', kImEnd});
    }

    TEST_CASE("scripted_model: under a grammar the reply must be a sentence of it") {
        model::Grammar::Builder builder;
        const auto grammar = builder.finish(builder.choice({"yes", "no"}));
        ScriptedModel good(skein::test::byte_tokenizer(),
                           std::vector<ScriptedReply>{{.text = "yes"}});
        const Completion reply = ask(good, {1}, 100, grammar);
        CHECK(reply.tokens == Tokens{'y', 'e', 's'});
        CHECK(reply.finish == FinishReason::grammar_complete);
        ScriptedModel bad(skein::test::byte_tokenizer(),
                          std::vector<ScriptedReply>{{.text = "yep"}});
        CHECK_THROWS_WITH_AS(ask(bad, {1}, 100, grammar),
                             doctest::Contains("leaves the grammar after \"ye\""), model::Error);
    }

    TEST_CASE("scripted_model: a script may be a function of the prompt, and may fail") {
        ScriptedModel model(skein::test::byte_tokenizer(), [](std::span<const Token> prompt) {
            ScriptedReply reply;
            reply.text = std::to_string(prompt.size());
            if (prompt.size() > 2) reply.error = "logits are NaN at position 3";
            return reply;
        });
        CHECK(ask(model, {1, 2}).tokens == Tokens{'2', kImEnd});
        const Completion broken = ask(model, {1, 2, '2', kImEnd});
        CHECK(broken.finish == FinishReason::error);
        CHECK(broken.error == "logits are NaN at position 3");
    }

    TEST_CASE("scripted_model: the byte tokenizer needs no model file") {
        const auto tokenizer = make_byte_tokenizer();
        std::string all;
        for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
        CHECK(tokenizer->decode(tokenizer->encode(all)) == all);
        CHECK(tokenizer->find_special("<|im_end|>") == tokenizer->eos());
    }
}
