// The demo's job in small, killed with SIGKILL again and again, with the real model, sandbox and
// grader: what the store promises must hold for a whole process tree.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <boost/json/parse.hpp>
#include <cerrno>
#include <cmath>
#include <random>

#include "agent/store/reader.h"
#include "model/load/model_file.h"
#include "tests/support/model_path.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

using namespace skein::test;
namespace store = skein::agent::store;

namespace {

const std::string kSkein = std::string(SKEIN_BUILD_DIR) + "/skein";

/// Runs and kills the process at its `lines`-th line of progress; negative: lets it finish.
ProgramResult run_killed(std::vector<std::string> arguments, int lines) {
    arguments.insert(arguments.begin(), kSkein);
    int seen = 0;
    return run_program(arguments, {}, [&](pid_t pid, const std::string& line) {
        if (!line.starts_with("[")) return;
        if (++seen == lines) kill(pid, SIGKILL);
    });
}

/// Orphans of the killed process become ours; returns once every one of them is gone. A survivor
/// makes this wait for ever, and the test's time limit fails it.
void reap_orphans() {
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
}

std::size_t recorded(const std::filesystem::path& run) {
    return store::Reader(run).events("evaluation").size();
}

void check_stored_tokens(const std::filesystem::path& run) {
    const store::Reader reader(run);
    CHECK(reader.verify().empty());
    const skein::model::Tokenizer tokenizer(
        skein::model::open_model_file(model_path())->vocabulary());
    std::size_t steps = 0;
    for (const auto& trajectory : reader.trajectories()) {
        for (const auto& step : reader.steps(trajectory.record.uid)) {
            ++steps;
            const auto& reply = step.record.reply;
            CHECK(reply.logprobs.size() == reply.tokens.size());
            CHECK(skein::model::to_valid_utf8(tokenizer.decode(reply.tokens)) == step.record.text);
            for (std::size_t i = 0; i < reply.logprobs.size(); ++i) {
                const bool forced = reply.origins[i] == skein::agent::Origin::forced;
                CHECK((forced ? std::isnan(reply.logprobs[i]) : reply.logprobs[i] <= 0));
            }
        }
    }
    CHECK(steps == 2);  // a quarter of four evaluations, two tasks
}

}  // namespace

TEST_SUITE("harnesses/run") {
    TEST_CASE("run: killed at five moments and resumed, it finishes and nothing recorded is lost") {
        REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
        constexpr unsigned kSeed = 20;
        MESSAGE("seed ", kSeed);
        std::mt19937 random(kSeed);
        const TemporaryDirectory home;
        const auto run = home / "run";
        put_file(home / "small.yaml",
                 "version: 1\n"
                 "models: {main: {path: \"" +
                     model_path().string() +
                     "\"}}\n"
                     "agents: {kernel: {model: main, limits: {reply_tokens: 64}}}\n"
                     "kernel_opt:\n"
                     "  tasks: [sgemv, histogram]\n"
                     "  proposer: moves\n"
                     "  evaluations: 4\n"
                     "  finalists: 1\n");
        std::vector<std::string> command = {"run", (home / "small.yaml").string(), "--run-dir",
                                            run.string()};
        std::size_t before = 0;
        for (int kill_number = 0; kill_number < 5; ++kill_number) {
            const int lines = 2 + static_cast<int>(random() % 4);
            CAPTURE(kill_number);
            CAPTURE(lines);
            const ProgramResult killed = run_killed(command, lines);
            CAPTURE(killed.err);
            reap_orphans();
            command = {"resume", run.string()};
            if (killed.exit_code == 0) break;  // it was faster than the last kill
            CHECK(killed.exit_code == 128 + SIGKILL);
            const std::size_t now = recorded(run);
            CHECK(now >= before);
            before = now;
            CHECK(store::Reader(run).verify().empty());
        }
        const ProgramResult last = run_killed({"resume", run.string(), "--json"}, -1);
        CAPTURE(last.err);
        REQUIRE(last.exit_code == 0);
        reap_orphans();
        const auto result = boost::json::parse(last_line(last.out));
        CHECK(result.at("status") == "finished");
        REQUIRE(result.at("tasks").as_array().size() == 2);
        for (const auto& task : result.at("tasks").as_array()) {
            CHECK(task.at("evaluations").as_int64() == 4);
            CHECK(task.at("proposed").at("model").as_int64() == 1);
            CHECK(task.at("proposed").at("search").as_int64() == 3);
            CHECK_FALSE(task.at("random_control").is_null());
            CHECK(task.at("limit_fraction").as_double() <= 1.0);
            for (const char* field : {"verdict", "speedup", "speedup_low", "speedup_high",
                                      "vs_o3_native", "flags_only"}) {
                CAPTURE(field);
                CHECK(task.as_object().contains(field));
            }
        }
        CHECK(result.at("tokens").at("sampled").as_int64() > 0);
        CHECK(recorded(run) > before);
        CHECK(std::filesystem::exists(run / "report.html"));
        CHECK(std::filesystem::exists(run / "winners/sgemv.cc"));
        check_stored_tokens(run);

        const ProgramResult played =
            run_killed({"replay", run.string(), "--mode", "playback", "--json"}, -1);
        CHECK(played.exit_code == 0);
        const auto report = boost::json::parse(last_line(played.out));
        CHECK(report.at("status") == "identical");
        CHECK(report.at("steps").as_int64() == 2);
        CHECK(report.at("first_divergence").is_null());
        CHECK(run_killed({"resume", run.string()}, -1).exit_code == 2);  // it is over
    }
}
