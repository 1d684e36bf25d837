#include "agent/store/reader.h"

#include <doctest/doctest.h>

#include "agent/store/schema.h"
#include "tests/agent/store/store_fixture.h"

using namespace skein::agent;
using namespace skein::agent::store;
using namespace skein::test;
using skein::tools::Effect;
using skein::tools::ToolStatus;

TEST_SUITE("agent/store/reader") {
    TEST_CASE("reader: steps come back as they were recorded, token for token and bit for bit") {
        const TemporaryDirectory directory;
        auto writer = Writer::create(directory.path(), run_record());
        const auto trajectory = trajectory_record();
        writer->begin_trajectory(trajectory);
        const auto first = step_record(trajectory.uid, 0), second = step_record(trajectory.uid, 1);
        writer->record_step(first);
        writer->record_step(second);
        const std::vector<std::pair<Origin, Tokens>> tail = {{Origin::tool, {42, 43}}};
        writer->finish_trajectory(trajectory.uid, ExitStatus::finished, "done", tail);

        const Reader reader(directory.path());
        const auto stored = reader.trajectories();
        REQUIRE(stored.size() == 1);
        CHECK(stored[0].record.uid == trajectory.uid);
        CHECK(stored[0].status == "finished");
        CHECK(stored[0].final_message == "done");
        const auto steps = reader.steps(trajectory.uid);
        REQUIRE(steps.size() == 2);
        CHECK(steps[1].record.delta == second.delta);
        CHECK(steps[1].record.closing == second.closing);
        CHECK(steps[1].record.said == second.said);
        CHECK(steps[1].record.reply.tokens == second.reply.tokens);
        CHECK(steps[1].record.reply.logprobs == second.reply.logprobs);
        CHECK(steps[1].record.reply.origins == second.reply.origins);
        CHECK(steps[1].record.sampling.seed == second.sampling.seed);
        CHECK(steps[1].record.reply.rng_position == 5);

        const TokenLog log = reader.token_log(trajectory.uid);
        const Tokens expected = {1, 2, 100, 200, 300, 7, 8, 9, 3,  //
                                 1, 2, 101, 200, 300, 7, 8, 9, 3, 42, 43};
        CHECK(Tokens(log.tokens().begin(), log.tokens().end()) == expected);
        CHECK(log.segments().back().origin == Origin::tool);
    }

    TEST_CASE("G08 reader: tool bytes come back equal, text columns stay valid UTF-8") {
        const TemporaryDirectory directory;
        auto writer = Writer::create(directory.path(), run_record());
        const auto trajectory = trajectory_record();
        const auto step = step_record(trajectory.uid, 0);
        writer->begin_trajectory(trajectory);
        writer->record_step(step);
        const std::string odd("a\0b\xED\xA0\x80\xFF\xEF\xBF\xBF", 9);
        ToolCallRecord call;
        call.step = step.uid;
        call.call = {"c1", "na\xF0\x9F\x98me", "{\"x\": \"\xFF\"}"};
        call.effect = Effect::reads;
        call.result = {ToolStatus::ok, odd, {{"n", 1}}};
        call.shown = "short";
        writer->record_tool_call(call);
        writer->record_event(trajectory.uid, "odd\xFF", "{}");
        writer->flush();

        const Reader reader(directory.path());
        const auto steps = reader.steps(trajectory.uid);
        REQUIRE(steps.size() == 1);
        REQUIRE(steps[0].calls.size() == 1);
        CHECK(steps[0].calls[0].result == odd);
        CHECK(steps[0].calls[0].shown == "short");
        CHECK(steps[0].calls[0].call.name == call.call.name);
        CHECK(steps[0].calls[0].call.arguments == call.call.arguments);
        CHECK(reader.blob(to_hex(sha256(odd))) == odd);
        CHECK(reader.events()[0].kind == "odd\xEF\xBF\xBD");
        CHECK(reader.verify().empty());
    }

    TEST_CASE("reader: damage is found and named") {
        const TemporaryDirectory directory;
        auto writer = Writer::create(directory.path(), run_record());
        const auto trajectory = trajectory_record();
        writer->begin_trajectory(trajectory);
        writer->record_step(step_record(trajectory.uid, 0));
        const std::string hash = writer->put_blob("some bytes");
        writer->flush();
        const Reader reader(directory.path());
        CHECK(reader.verify().empty());
        CHECK_THROWS_AS(reader.blob(std::string(64, 'a')), Error);
        {
            const auto db = open_database(directory.path() / "skein.db", OpenMode::write);
            db->exec("UPDATE segment SET ids=x'000102' WHERE id=1");
        }
        CHECK(reader.verify().find("segment 1") != std::string::npos);
        {
            const auto db = open_database(directory.path() / "skein.db", OpenMode::write);
            db->exec("UPDATE blob SET bytes=x'0041'");
        }
        CHECK_THROWS_AS(reader.blob(hash), Error);
    }

    TEST_CASE("reader: runs, episodes, rewards and events are there") {
        const TemporaryDirectory directory;
        auto writer = Writer::create(directory.path(), run_record());
        const Uid episode = Uid::make();
        writer->record_task("sgemm", 1, "{}");
        writer->begin_episode({episode, "sgemm", "sgemm@1", "moves", 0});
        writer->record_reward({"evaluation", episode, "speedup", 3.5, "grader/1", "{}"});
        writer->finish_episode(episode, "ok", "evaluations");
        writer->finish_run("finished", R"({"x":1})");
        const Reader reader(directory.path());
        CHECK(reader.run().status == "finished");
        CHECK(reader.run().result_json == R"({"x":1})");
        CHECK(reader.run().ended_ms.has_value());
        REQUIRE(reader.episodes().size() == 1);
        CHECK(reader.episodes()[0].status == "ok");
        REQUIRE(reader.rewards().size() == 1);
        CHECK(reader.rewards()[0].record.value == 3.5);
    }
}
