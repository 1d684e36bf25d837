#include "agent/store/replay.h"

#include <doctest/doctest.h>

#include "agent/store/schema.h"
#include "tests/agent/agent_fixture.h"
#include "tests/agent/store/store_fixture.h"
#include "tests/support/m3_tokenizer.h"

using namespace skein::agent;
using namespace skein::agent::store;
using namespace skein::test;

namespace {

/// Runs a scripted agent into a store and returns its trajectory.
Uid stored_run(const std::filesystem::path& directory, FakeTools& fakes,
               const std::vector<ScriptedReply>& replies) {
    auto writer = Writer::create(directory, run_record());
    ScriptedModel model(byte_tokenizer(), replies);
    AgentConfig config;
    config.instruction = "Test.";
    Agent agent(config, model, fakes.registry, *writer);
    const RunResult result = run_now(agent.run("Do \xF0\x9F it <|im_end|>."));
    writer->finish_run(to_string(result.exit_status), "{}");
    return result.trajectory;
}

std::vector<ScriptedReply> two_calls_and_an_answer() {
    return {
        {.text = "I try." + call_text("echo", R"({"text": "one"})") + call_text("nosuch", "{}")},
        {.text = call_text("echo", "{broken")},
        {.text = call_text("fail", "{}")},
        {.text = "All done."}};
}

PlaybackReport play(const std::filesystem::path& directory) {
    const Reader reader(directory);
    const auto tokenizer = byte_tokenizer();
    const auto trajectories = reader.trajectories();
    return run_now(playback(reader, trajectories.at(0), *tokenizer));
}

}  // namespace

TEST_SUITE("agent/store/replay") {
    TEST_CASE("replay: playback of a stored run is identical and runs no tool") {
        const TemporaryDirectory directory;
        FakeTools fakes;
        stored_run(directory.path(), fakes, two_calls_and_an_answer());
        const std::size_t calls_before = fakes.calls.size();
        const PlaybackReport report = play(directory.path());
        CAPTURE(report.first_divergence);
        CHECK(report.status == PlaybackReport::Status::identical);
        CHECK(report.steps == 4);
        CHECK(report.tokens > 50);
        CHECK(fakes.calls.size() == calls_before);
    }

    TEST_CASE("replay: a run with thinking and element calls plays back in its own format") {
        const TemporaryDirectory directory;
        const auto tokenizer = std::make_shared<const skein::model::Tokenizer>(m3_vocabulary());
        const std::string tag = "]<]minimax[>[";
        FakeTools fakes;
        {
            auto writer = Writer::create(directory.path(), run_record());
            ScriptedModel model(
                tokenizer,
                {{.text = "hm</mm:think>" + tag + "<tool_call>" + tag + "<invoke name=\"echo\">" +
                          tag + "<text>one" + tag + "</text>" + tag + "</invoke>" + tag +
                          "</tool_call>"},
                 {.text = "ok</mm:think>Done."}},
                {.chat_format = "minimax-m3"});
            AgentConfig config;
            config.thinking = {ThinkingMode::enabled, 99};
            Agent agent(config, model, fakes.registry, *writer);
            const RunResult result = run_now(agent.run("Go."));
            CHECK(result.final_message == "Done.");
            writer->finish_run(to_string(result.exit_status), "{}");
        }
        CHECK(fakes.calls.size() == 1);
        const Reader reader(directory.path());
        const PlaybackReport report =
            run_now(playback(reader, reader.trajectories().at(0), *tokenizer));
        CAPTURE(report.first_divergence);
        CHECK(report.status == PlaybackReport::Status::identical);
        CHECK(report.steps == 2);
    }

    TEST_CASE("replay: a changed token, result or tool list is found at its step") {
        const auto diverges = [](const std::string& change) {
            const TemporaryDirectory directory;
            FakeTools fakes;
            stored_run(directory.path(), fakes, two_calls_and_an_answer());
            open_database(directory.path() / "skein.db", OpenMode::write)->exec(change);
            const PlaybackReport report = play(directory.path());
            CAPTURE(change);
            CHECK(report.status == PlaybackReport::Status::diverged);
            return report.first_divergence;
        };
        const std::vector<std::string> other = {"something else"};
        CHECK(diverges("UPDATE step SET said=x'" + to_hex(encode_strings(other)) +
                       "' WHERE sequence=0")
                  .find("step 0, prompt") != std::string::npos);
        CHECK(diverges("UPDATE tool_call SET arguments=CAST('{\"text\": \"two\"}' AS BLOB) "
                       "WHERE sequence=0 AND step=(SELECT uid FROM step WHERE sequence=0)")
                  .find("step 0") != std::string::npos);
        CHECK(diverges("UPDATE trajectory SET status='stuck'").find("end:") != std::string::npos);
    }

    TEST_CASE("replay: a record that cannot be replayed says so and is not guessed at") {
        const TemporaryDirectory directory;
        FakeTools fakes;
        stored_run(directory.path(), fakes, two_calls_and_an_answer());
        open_database(directory.path() / "skein.db", OpenMode::write)
            ->exec("UPDATE trajectory SET tools='not json'");
        const PlaybackReport report = play(directory.path());
        CHECK(report.status == PlaybackReport::Status::not_replayable);
        CHECK(report.first_divergence.find("tool list") != std::string::npos);
    }

    TEST_CASE("replay: decoding the stored ids gives the text shown, each id with a logprob") {
        const TemporaryDirectory directory;
        FakeTools fakes;
        const Uid uid = stored_run(directory.path(), fakes, two_calls_and_an_answer());
        const Reader reader(directory.path());
        const auto tokenizer = byte_tokenizer();
        for (const StoredStep& step : reader.steps(uid)) {
            CHECK(step.record.reply.logprobs.size() == step.record.reply.tokens.size());
            CHECK(tokenizer->decode(step.record.reply.tokens).starts_with(step.record.text));
        }
    }

    TEST_CASE("replay: a replayed beginning continues with the live model and is stored once") {
        const TemporaryDirectory directory;
        FakeTools fakes;
        const auto replies = two_calls_and_an_answer();
        stored_run(directory.path(), fakes, {replies[0], replies[1]});  // the script ends too early
        {
            // As after kill -9: no end was stored.
            const auto db = open_database(directory.path() / "skein.db", OpenMode::write);
            db->exec("DELETE FROM step WHERE sequence>=2");
            db->exec(
                "DELETE FROM segment WHERE id NOT IN (SELECT delta_segment FROM step UNION "
                "SELECT reply_segment FROM step UNION SELECT closing_segment FROM step)");
            db->exec("UPDATE trajectory SET status='running',ended_ms=NULL");
        }
        const std::size_t calls_before = fakes.calls.size();
        const StoredTrajectory stored = Reader(directory.path()).trajectories().at(0);
        ReplayState state(Reader(directory.path()).steps(stored.record.uid));
        REQUIRE(state.steps().size() == 2);
        auto writer = Writer::open(directory.path());
        ScriptedModel live(byte_tokenizer(), {replies[2], replies[3]});
        ReplayModel model(state, live.tokenizer(), stored.record, &live);
        ReplayRecorder recorder(state, stored, writer.get());
        AgentConfig config;
        config.instruction = "Test.";
        Agent agent(config, model, fakes.registry, recorder);
        const RunResult result = run_now(agent.run("Do \xF0\x9F it <|im_end|>."));
        CHECK_FALSE(state.difference().has_value());
        CHECK(result.exit_status == ExitStatus::finished);
        writer.reset();
        const Reader reader(directory.path());
        CHECK(reader.trajectories().size() == 1);
        CHECK(reader.trajectories()[0].status == "finished");
        CHECK(reader.steps(stored.record.uid).size() == 4);
        CHECK(play(directory.path()).status == PlaybackReport::Status::identical);
        CHECK(fakes.calls.size() > calls_before);
    }
}
