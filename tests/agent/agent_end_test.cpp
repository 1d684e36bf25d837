// How runs end: limits, errors, cancellation, and how an interrupted one goes on.

#include <doctest/doctest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>

#include "tests/agent/agent_fixture.h"

using namespace skein::agent;
using skein::test::call_text;
using skein::test::run_now;
using skein::test::ScriptedRun;
namespace asio = boost::asio;
namespace tools = skein::tools;

namespace {

std::string echo(std::string_view text) {
    return call_text("echo", "{\"text\": \"" + std::string(text) + "\"}");
}

std::vector<ScriptedReply> echoes(int count) {
    std::vector<ScriptedReply> replies;
    for (int i = 0; i < count; ++i) replies.push_back({.text = echo(std::to_string(i))});
    return replies;
}

void check_finished_once(const ScriptedRun& run, ExitStatus status) {
    REQUIRE(run.recorder.finishes.size() == 1);
    CHECK(run.recorder.finishes[0].status == status);
    const auto log = run.agent->log().tokens();
    CHECK(recorded_tokens(run.recorder, run.agent->trajectory()) == Tokens(log.begin(), log.end()));
}

/// Waits for its cancellation; a tool that a run's end has to interrupt.
class EndlessTool final : public tools::Tool {
  public:
    explicit EndlessTool(std::function<void()> on_start) : on_start_(std::move(on_start)) {}
    const tools::ToolSpec& spec() const override { return spec_; }
    asio::awaitable<tools::ToolResult> call(boost::json::object) override {
        on_start_();
        auto executor = co_await asio::this_coro::executor;
        asio::steady_timer timer(executor, std::chrono::steady_clock::time_point::max());
        auto wait = timer.async_wait(asio::use_awaitable);
        co_await std::move(wait);
        co_return tools::ToolResult{tools::ToolStatus::ok, "never", {}};
    }

  private:
    tools::ToolSpec spec_{"endless", "Never ends.", skein::test::object_schema({}),
                          tools::Effect::reads};
    std::function<void()> on_start_;
};

/// A recorder that fails at one kind of record, as a full disk does.
class FullDisk final : public Recorder {
  public:
    explicit FullDisk(int steps) : steps_left_(steps) {}
    void begin_trajectory(const TrajectoryRecord&) override {}
    void record_step(const StepRecord&) override {
        if (steps_left_-- == 0) throw std::runtime_error("disk full");
    }
    void record_tool_call(const ToolCallRecord&) override {}
    void record_reward(const RewardRecord&) override {}
    void record_event(const std::optional<Uid>&, std::string_view, std::string_view) override {}
    void finish_trajectory(const Uid&, ExitStatus, std::string_view,
                           std::span<const std::pair<Origin, Tokens>>) override {
        throw std::runtime_error("disk still full");
    }

  private:
    int steps_left_;
};

}  // namespace

TEST_SUITE("agent/agent: ends") {
    TEST_CASE("agent: a turn limit of three means three model calls") {
        ScriptedRun run(echoes(9));
        run.config.limits.turns = 3;
        const RunResult result = run.run();
        CHECK(result.exit_status == ExitStatus::turn_limit);
        CHECK(run.model->replies_given() == 3);
        CHECK(run.fakes.calls.size() == 3);
        check_finished_once(run, ExitStatus::turn_limit);
    }

    TEST_CASE("agent: calls beyond the limit are answered, not run; an answer is still possible") {
        ScriptedRun over({{.text = echo("1") + echo("2") + echo("3")}, {.text = "late"}});
        over.config.limits.tool_calls = 2;
        CHECK(over.run().exit_status == ExitStatus::tool_call_limit);
        CHECK(over.fakes.calls.size() == 2);
        REQUIRE(over.recorder.tool_calls.size() == 3);
        CHECK(over.recorder.tool_calls[2].result.status == tools::ToolStatus::cancelled);
        CHECK(over.recorder.tool_calls[2].shown.find("limit of 2 tool calls") != std::string::npos);
        check_finished_once(over, ExitStatus::tool_call_limit);

        ScriptedRun exact({{.text = echo("1") + echo("2")}, {.text = "answer"}});
        exact.config.limits.tool_calls = 2;
        CHECK(exact.run().exit_status == ExitStatus::finished);
    }

    TEST_CASE("agent: token limits end the run and are never passed") {
        ScriptedRun output(echoes(50));
        output.config.limits.output_tokens = 200;
        CHECK(output.run().exit_status == ExitStatus::output_token_limit);
        CHECK(output.agent->usage().sampled_tokens == 200);
        check_finished_once(output, ExitStatus::output_token_limit);

        ScriptedRun whole(echoes(50));
        whole.config.limits.tokens = 3000;
        CHECK(whole.run().exit_status == ExitStatus::token_limit);
        check_finished_once(whole, ExitStatus::token_limit);
    }

    TEST_CASE("agent: D11 and D12, outputs of three windows never fill the window") {
        const std::string huge(3 * 4096, 'y');
        std::vector<ScriptedReply> replies;
        for (int i = 0; i < 40; ++i) {
            replies.push_back({.text = call_text("dump", "{\"n\": " + std::to_string(i) + "}")});
        }
        ScriptedRun run(replies);
        run.options.max_context = 4096;
        run.config.limits.tool_output_tokens = 0;
        run.fakes.add("dump", {{"n", {{"type", "integer"}}}}, [&](const boost::json::object&) {
            return tools::ToolResult{tools::ToolStatus::ok, huge, {}};
        });
        const RunResult result = run.run();
        CHECK(result.exit_status == ExitStatus::context_full);
        CHECK(result.usage.turns >= 2);
        check_finished_once(run, ExitStatus::context_full);
    }

    TEST_CASE("agent: a prompt that does not fit ends before the model is asked") {
        ScriptedRun run({{.text = "never"}});
        run.options.max_context = 1500;
        const RunResult result = run.run(std::string(5000, 'x'));
        CHECK(result.exit_status == ExitStatus::context_full);
        CHECK(run.model->replies_given() == 0);
        check_finished_once(run, ExitStatus::context_full);
    }

    TEST_CASE("agent: the same call with the same result is stopped as stuck") {
        std::vector<ScriptedReply> replies(20, ScriptedReply{.text = echo("again")});
        ScriptedRun run(replies);
        run.config.limits.same_action = 4;
        CHECK(run.run().exit_status == ExitStatus::stuck);
        CHECK(run.fakes.calls.size() == 4);
        check_finished_once(run, ExitStatus::stuck);
        ScriptedRun silent(std::vector<ScriptedReply>(20, ScriptedReply{.text = "<think>hm"}));
        CHECK(silent.run().exit_status == ExitStatus::stuck);
        CHECK(silent.model->replies_given() == 6);
    }

    TEST_CASE("agent: A13, an engine error is recorded with what was sampled before it") {
        ScriptedRun run({{.text = echo("a")}, {.text = "half", .error = "logits are NaN"}});
        const RunResult result = run.run();
        CHECK(result.exit_status == ExitStatus::engine_error);
        CHECK(result.error == "logits are NaN");
        REQUIRE(run.recorder.steps.size() == 2);
        CHECK(run.recorder.steps[1].reply.finish == FinishReason::error);
        CHECK(run.recorder.steps[1].text.starts_with("half"));
        check_finished_once(run, ExitStatus::engine_error);
        // An exception of the model is the same kind of end.
        ScriptedRun empty({});
        CHECK(empty.run().exit_status == ExitStatus::engine_error);
        CHECK(empty.agent->usage().turns == 1);
        check_finished_once(empty, ExitStatus::engine_error);
    }

    TEST_CASE("agent: a broken tool infrastructure ends the run after the result is recorded") {
        ScriptedRun run({{.text = call_text("broken", "{}") + echo("after")}});
        const RunResult result = run.run();
        CHECK(result.exit_status == ExitStatus::tool_infrastructure_error);
        CHECK(result.error.find("no sandbox here") != std::string::npos);
        CHECK(run.recorder.tool_calls.size() == 2);
        CHECK(run.fakes.calls.size() == 1);
        check_finished_once(run, ExitStatus::tool_infrastructure_error);
    }

    TEST_CASE("agent: a failed tool is an answer like any other") {
        ScriptedRun run({{.text = call_text("fail", "{}")}, {.text = "I see."}});
        CHECK(run.run().exit_status == ExitStatus::finished);
        CHECK(run.recorder.tool_calls.at(0).result.status == tools::ToolStatus::failed);
    }

    TEST_CASE("agent: a final tool ends the run with its text, but only when it succeeds") {
        ScriptedRun run(
            {{.text = call_text("fail", "{}")}, {.text = echo("the end") + echo("more")}});
        run.config.final_tools = {"echo", "fail"};
        const RunResult result = run.run();
        CHECK(result.exit_status == ExitStatus::finished);
        CHECK(result.final_message == "the end");
        CHECK(run.fakes.calls.size() == 2);
        check_finished_once(run, ExitStatus::finished);
    }

    TEST_CASE("agent: a disk that is full is an error of the run, not a silence") {
        ScriptedRun run(echoes(3));
        run.start();
        FullDisk disk(1);
        Agent agent(run.config, *run.model, run.fakes.registry, disk);
        const RunResult result = run_now(agent.run("Go."));
        CHECK(result.exit_status == ExitStatus::internal_error);
        CHECK(result.error == "disk full; disk still full");
    }

    TEST_CASE("agent: cancelling during a tool ends the run at once, stored and well formed") {
        ScriptedRun run({{.text = call_text("endless", "{}") + echo("after")}, {.text = "never"}});
        asio::io_context context;
        asio::cancellation_signal cancel;
        run.fakes.registry.add(std::make_unique<EndlessTool>([&] {
            asio::post(context, [&] { cancel.emit(asio::cancellation_type::terminal); });
        }));
        run.start();
        std::optional<RunResult> result;
        asio::co_spawn(context, run.agent->run("Go."),
                       asio::bind_cancellation_slot(
                           cancel.slot(), [&](std::exception_ptr error, RunResult value) {
                               CHECK_FALSE(error);
                               result = std::move(value);
                           }));
        context.run();
        REQUIRE(result);
        CHECK(result->exit_status == ExitStatus::cancelled);
        REQUIRE(run.recorder.tool_calls.size() == 2);
        CHECK(run.recorder.tool_calls[1].result.status == tools::ToolStatus::cancelled);
        CHECK(run.fakes.calls.empty());
        check_finished_once(run, ExitStatus::cancelled);
    }

    TEST_CASE("agent: the wall time interrupts a tool that does not end") {
        ScriptedRun run({{.text = call_text("endless", "{}")}});
        run.fakes.registry.add(std::make_unique<EndlessTool>([] {}));
        run.config.limits.wall_time = std::chrono::milliseconds(20);
        CHECK(run.run().exit_status == ExitStatus::time_limit);
        CHECK(run.recorder.tool_calls.at(0).result.status == tools::ToolStatus::timed_out);
        check_finished_once(run, ExitStatus::time_limit);
    }

    TEST_CASE("agent: an agent that is destroyed in the middle leaves a finished record") {
        ScriptedRun run(echoes(2));
        run.start();
        run.agent->say("Go.");
        run_now(run.agent->step());
        const Tokens log(run.agent->log().tokens().begin(), run.agent->log().tokens().end());
        const Uid trajectory = run.agent->trajectory();
        run.agent.reset();
        REQUIRE(run.recorder.finishes.size() == 1);
        CHECK(run.recorder.finishes[0].status == ExitStatus::cancelled);
        CHECK(recorded_tokens(run.recorder, trajectory) == log);
        CHECK_FALSE(run.recorder.finishes[0].tail.empty());
    }

    TEST_CASE("agent: a run that has ended cannot be used again") {
        ScriptedRun run({{.text = "ok"}});
        run.run();
        CHECK_THROWS_AS(run.agent->say("more"), std::logic_error);
        CHECK_THROWS_AS(run_now(run.agent->run("more")), std::logic_error);
        CHECK(run.agent->finish(ExitStatus::stuck, "x").exit_status == ExitStatus::finished);
        CHECK(run.recorder.finishes.size() == 1);
    }

    TEST_CASE("agent: events tell a run in order") {
        ScriptedRun run({{.text = echo("x")}, {.text = "ok"}});
        run.run();
        std::string story;
        for (const AgentEvent& event : run.events) story += "tdscfe"[event.index()];
        // turn, text, call started, call finished, turn finished; then the same without a call.
        CHECK(story == "tdscftdfe");
    }
}

TEST_SUITE("agent/agent: forced calls") {
    TEST_CASE("agent: a forced turn is one call of one of the tools given") {
        ScriptedRun run({{.text = call_text("echo", R"({"text":"move"})")}, {.text = "free"}});
        run.start();
        run.agent->say("Choose.");
        TurnOptions options;
        options.force_call = {&run.fakes.registry.find("echo")->spec()};
        const auto step = run_now(run.agent->step(std::move(options)));
        CHECK(step.finish == FinishReason::grammar_complete);
        REQUIRE(step.results.size() == 1);
        CHECK(step.results[0].second.text == "move");
        CHECK(run.recorder.steps.at(0).grammar == "one call of echo");
        CHECK(run.text().find("</tool_call><|im_end|>\n<|im_start|>tool\nmove") !=
              std::string::npos);
        const auto free = run_now(run.agent->step());
        CHECK(free.ended == ExitStatus::finished);
        run.agent->finish(*free.ended, free.final_message);
        check_finished_once(run, ExitStatus::finished);
    }

    TEST_CASE("agent: a forced turn is refused when no call is left") {
        ScriptedRun run({{.text = call_text("echo", R"({"text":"move"})")}});
        run.config.limits.tool_calls = 1;
        run.start();
        TurnOptions options;
        options.force_call = {&run.fakes.registry.find("echo")->spec()};
        run_now(run.agent->step(options));
        CHECK(run_now(run.agent->step(options)).ended == ExitStatus::tool_call_limit);
    }
}

TEST_SUITE("agent/agent: resume") {
    /// What a store would hold after a crash at this moment.
    ResumePoint crash(const ScriptedRun& run) {
        return {run.agent->trajectory(), run.recorder.steps, run.recorder.tool_calls, {}};
    }

    TEST_CASE("agent: a resumed run goes on with the stored ids, limits and results") {
        ScriptedRun first(echoes(2));
        first.start();
        first.agent->say("Go.");
        run_now(first.agent->step());
        run_now(first.agent->step());
        const Tokens before(first.agent->log().tokens().begin(), first.agent->log().tokens().end());

        ScriptedRun second({{.text = echo("third")}, {.text = "never"}});
        second.config.limits.turns = 3;
        second.start();
        const RunResult result = run_now(second.agent->resume(crash(first)));
        CHECK(result.exit_status == ExitStatus::turn_limit);
        CHECK(result.trajectory == first.agent->trajectory());
        CHECK(result.usage.turns == 3);
        CHECK(result.usage.tool_calls == 3);
        const auto log = second.agent->log().tokens();
        REQUIRE(log.size() > before.size());
        CHECK(std::equal(before.begin(), before.end(), log.begin()));
        CHECK(second.recorder.trajectories.empty());
        REQUIRE(second.recorder.steps.size() == 1);
        CHECK(second.recorder.steps[0].sequence == 2);
        CHECK(second.recorder.tool_calls.at(0).call.id == "s2c0");
    }

    TEST_CASE("agent: J08 and J09, a call without a stored result is named, never repeated") {
        ScriptedRun first({{.text = echo("one") + echo("two")}});
        first.start();
        first.agent->say("Go.");
        run_now(first.agent->step());
        ResumePoint point = crash(first);
        point.calls.pop_back();

        ScriptedRun second({{.text = "I will look."}});
        second.start();
        const RunResult result = run_now(second.agent->resume(point));
        CHECK(result.exit_status == ExitStatus::finished);
        CHECK(second.fakes.calls.empty());
        REQUIRE(second.recorder.tool_calls.size() == 1);
        CHECK(second.recorder.tool_calls[0].call.id == "s0c1");
        CHECK(second.text().find("tool\none<|im_end|>\n<|im_start|>tool\nInterrupted: the process "
                                 "ended during this call.") != std::string::npos);
        // The second crash finds the interrupted result stored and adds nothing.
        ResumePoint again = crash(first);
        again.calls.pop_back();
        again.calls.push_back(second.recorder.tool_calls[0]);
        ScriptedRun third({{.text = "ok"}});
        third.start();
        run_now(third.agent->resume(again));
        CHECK(third.recorder.tool_calls.empty());
    }

    TEST_CASE("agent: a tail that was stored at an orderly end is taken over as it is") {
        ScriptedRun first(echoes(1));
        first.config.limits.turns = 1;
        first.run();
        ResumePoint point = crash(first);
        point.tail = first.recorder.finishes.at(0).tail;
        REQUIRE_FALSE(point.tail.empty());
        ScriptedRun second({{.text = "done"}});
        second.start();
        const RunResult result = run_now(second.agent->resume(point));
        CHECK(result.final_message == "done");
        const Tokens before(first.agent->log().tokens().begin(), first.agent->log().tokens().end());
        const auto log = second.agent->log().tokens();
        CHECK(std::equal(before.begin(), before.end(), log.begin()));
        // A step holds all that came since the one before, so the new delta covers the tail.
        const auto& delta = second.recorder.steps.at(0).delta;
        REQUIRE(delta.size() > point.tail.size());
        CHECK(std::equal(point.tail.begin(), point.tail.end(), delta.begin()));
    }

    TEST_CASE("agent: a stored run whose last reply is its answer only gets its end") {
        ScriptedRun first({{.text = "the answer"}});
        first.start();
        first.agent->say("Go.");
        run_now(first.agent->step());
        ScriptedRun second({});
        second.start();
        const RunResult result = run_now(second.agent->resume(crash(first)));
        CHECK(result.exit_status == ExitStatus::finished);
        CHECK(result.final_message == "the answer");
        CHECK(second.model->replies_given() == 0);
    }

    TEST_CASE("agent: after an interrupted reply the model is told so") {
        ScriptedRun first({{.text = echo("x"), .error = "power cut"}});
        first.run();
        ResumePoint point = crash(first);
        ScriptedRun second({{.text = "ok"}});
        second.start();
        CHECK(run_now(second.agent->resume(point)).exit_status == ExitStatus::finished);
        CHECK(second.fakes.calls.empty());
        CHECK(second.text().find("Your last reply was interrupted") != std::string::npos);
    }
}
