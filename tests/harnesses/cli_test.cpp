#include "harnesses/cli.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <fstream>

#include "harnesses/harness.h"
#include "harnesses/interrupt.h"
#include "harnesses/kernel_opt/task_check.h"
#include "harnesses/model_fetch.h"
#include "harnesses/paths.h"
#include "harnesses/progress.h"
#include "harnesses/run_directory.h"
#include "tests/support/model_path.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

using namespace skein::test;
namespace fs = std::filesystem;
namespace harnesses = skein::harnesses;

namespace {

const std::string kSkein = std::string(SKEIN_BUILD_DIR) + "/skein";

ProgramResult skein_run(const TemporaryDirectory& home, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kSkein);
    return run_program(arguments, {"SKEIN_RUNS=" + (home / "runs").string()});
}

/// Runs a shell script that may mount, in a mount namespace of its own; `$AS_BEFORE PROGRAM` in it
/// runs a program as the user the test runs as.
ProgramResult run_mounting(const std::string& script, std::vector<std::string> environment = {}) {
    if (geteuid() == 0) {
        environment.push_back("AS_BEFORE=exec");
        return run_program({"unshare", "--mount", "sh", "-c", script}, environment);
    }
    const std::string id = std::to_string(geteuid());
    environment.push_back("AS_BEFORE=unshare --user --map-user=" + id + " --map-group=" + id);
    return run_program({"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script},
                       environment);
}

/// `skein` with some of the machine hidden.
ProgramResult skein_behind(const TemporaryDirectory& home, const std::string& mounts,
                           const std::string& arguments) {
    return run_mounting(mounts + " && $AS_BEFORE " + kSkein + " " + arguments,
                        {"SKEIN_RUNS=" + (home / "runs").string()});
}

std::string kernel_yaml(const TemporaryDirectory& home, const std::string& more = {}) {
    const fs::path file = home / "run.yaml";
    put_file(file,
             "version: 1\n"
             "kernel_opt:\n"
             "  tasks: [sgemv]\n"
             "  proposer: search\n"
             "  evaluations: 2\n"
             "  final_pairs: 25\n" +
                 more);
    return file.string();
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("harnesses/cli") {
    TEST_CASE("cli: help is complete and the exit codes are told") {
        const TemporaryDirectory home;
        const auto help = skein_run(home, {"--help"});
        CHECK(help.exit_code == 0);
        for (const char* command :
             {"run", "resume", "replay", "log", "tasks", "model", "bench", "eval", "doctor",
              "config"}) {
            CAPTURE(command);
            CHECK(has(help.out, command));
            CHECK(skein_run(home, {command, "--help"}).exit_code == 0);
        }
        CHECK(has(help.out, "8 replay mismatch"));
    }

    TEST_CASE("cli: an unknown command or option is a usage error with code 2") {
        const TemporaryDirectory home;
        CHECK(skein_run(home, {"fly"}).exit_code == 2);
        CHECK(skein_run(home, {"run", "--nosuch", "x"}).exit_code == 2);
        CHECK(skein_run(home, {}).exit_code == 2);
    }

    TEST_CASE("cli: a missing model names the path and the remedy, code 7") {
        const TemporaryDirectory home;
        const auto result = skein_run(home, {"run", "hello", "--model", "/no/such.gguf", "--json"});
        CHECK(result.exit_code == 7);
        CHECK(has(result.err, "/no/such.gguf"));
        const auto last = boost::json::parse(last_line(result.out));
        CHECK(last.at("exit_code").as_int64() == 7);
    }

    TEST_CASE("cli: a truncated model names the first tensor that is cut, code 7") {
        const TemporaryDirectory home;
        const fs::path cut = home / "cut.gguf";
        fs::copy_file(std::string(SKEIN_TEST_DATA) + "/fixtures/llama-tiny/model-f32.gguf", cut);
        fs::permissions(cut, fs::perms::owner_all);
        fs::resize_file(cut, fs::file_size(cut) - 1);
        const auto result = skein_run(home, {"model", "inspect", cut.string()});
        CHECK(result.exit_code == 7);
        CHECK(has(result.err, "tensor"));
        CHECK(has(result.err, "file"));
    }

    TEST_CASE("cli: an unknown architecture is named and never called damaged, code 7") {
        const TemporaryDirectory home;
        const fs::path other = home / "other.gguf";
        std::ifstream in(std::string(SKEIN_TEST_DATA) + "/fixtures/llama-tiny/model-f32.gguf",
                         std::ios::binary);
        std::string bytes{std::istreambuf_iterator<char>(in), {}};
        const auto at = bytes.find("general.architecture");
        REQUIRE(at != std::string::npos);
        const auto value = bytes.find("llama", at);
        bytes.replace(value, 5, "zebra");
        put_file(other, bytes);
        const auto result = skein_run(home, {"model", "inspect", other.string()});
        CHECK(result.exit_code == 7);
        CHECK(has(result.err, "zebra"));
        CHECK_FALSE(has(result.err, "truncated"));
    }

    TEST_CASE("cli: a bad YAML key is told with line, column and suggestion, code 2") {
        const TemporaryDirectory home;
        const auto result = skein_run(home, {"run", kernel_yaml(home, "  evalautions: 3\n")});
        CHECK(result.exit_code == 2);
        CHECK(has(result.err, "run.yaml:7:3"));
        CHECK(has(result.err, "evaluations"));
        CHECK_FALSE(fs::exists(home / "runs"));
    }

    TEST_CASE("cli: an unknown task lists the ones there are, code 2") {
        const TemporaryDirectory home;
        const auto result = skein_run(home, {"run", kernel_yaml(home), "--tasks", "sgemn"});
        CHECK(result.exit_code == 2);
        CHECK(has(result.err, "sgemn"));
        CHECK(has(result.err, "sgemm"));
    }

    TEST_CASE("82 cli: without bwrap nothing is run and the remedy is told, code 6") {
        const TemporaryDirectory home;
        const auto result =
            skein_behind(home, "mount --bind /dev/null /usr/bin/bwrap", "run " + kernel_yaml(home));
        CHECK(result.exit_code == 6);
        CHECK(has(result.err, "bubblewrap"));
        CHECK_FALSE(has(result.out, "speedup"));
    }

    TEST_CASE("cli: a read-only run directory is refused before anything is paid for, code 2") {
        const TemporaryDirectory home;
        fs::create_directories(home / "ro");
        const std::string ro = (home / "ro").string();
        const auto result = skein_behind(
            home, "mount --bind " + ro + " " + ro + " && mount -o remount,bind,ro " + ro,
            "run " + kernel_yaml(home) + " --run-dir " + ro + "/run");
        CHECK(result.exit_code == 2);
        CHECK(has(result.err, "--run-dir"));
    }

    TEST_CASE("cli: a full disk is told, what was recorded stays and the run resumes, code 6") {
        const TemporaryDirectory home;
        const fs::path kept = home / "kept";
        fs::create_directories(home / "small");
        fs::create_directories(kept);
        const std::string small = (home / "small").string();
        // The store runs out of space in the middle; then it is copied to where there is some.
        const std::string script =
            "mount -t tmpfs -o size=640k,mode=777 tmpfs " + small + "; ($AS_BEFORE " + kSkein +
            " run " + kernel_yaml(home) + " --evaluations 40 --run-dir " + small +
            "/run); code=$?; cp -r " + small + "/run/. " + kept.string() + "; exit $code";
        const auto result = run_mounting(script);
        CHECK(result.exit_code == 6);
        CAPTURE(result.err);
        CHECK((has(result.err, "full") || has(result.err, "No space") || has(result.err, "disk")));
        REQUIRE(fs::exists(kept / "skein.db"));
        const auto shown = skein_run(home, {"log", "show", kept.string(), "--verify", "--json"});
        CHECK(shown.exit_code == 0);
        CHECK(has(last_line(shown.out), "\"verify\":\"ok\""));
    }

    TEST_CASE("cli: a run directory that is in use or holds a run is not touched, code 2") {
        const TemporaryDirectory home;
        auto run = harnesses::RunDirectory::create(
            home / "run", {skein::agent::Uid::make(), "agent", "x", "version: 1\n", "0"});
        const auto resumed = skein_run(home, {"resume", (home / "run").string()});
        CHECK(resumed.exit_code == 2);
        CHECK(has(resumed.err, "another process"));
        const auto again =
            skein_run(home, {"run", kernel_yaml(home), "--run-dir", (home / "run").string()});
        CHECK(again.exit_code == 2);
        CHECK(has(again.err, "holds a run already"));
    }

    TEST_CASE("cli: log lists runs as objects, and an unknown run names the known ones") {
        const TemporaryDirectory home;
        harnesses::RunDirectory::create(
            home / "runs/20260101-000000-abcd",
            {skein::agent::Uid::make(), "agent", "x", "version: 1\n", "0"});
        const auto list = skein_run(home, {"log", "list", "--json"});
        CHECK(list.exit_code == 0);
        const auto row = boost::json::parse(last_line(list.out));
        CHECK(row.at("run") == "20260101-000000-abcd");
        CHECK(row.at("status") == "running");
        const auto unknown = skein_run(home, {"log", "show", "1999"});
        CHECK(unknown.exit_code == 2);
        CHECK(has(unknown.err, "20260101-000000-abcd"));
    }

    TEST_CASE("cli: doctor reports level, layers, speed and models as one object") {
        const TemporaryDirectory home;
        const auto result = skein_run(home, {"doctor", "--json"});
        CHECK(result.exit_code == 0);
        const auto object = boost::json::parse(last_line(result.out));
        CHECK(object.at("sandbox").at("level") == "full");
        CHECK(object.at("sandbox").at("layers").as_array().size() > 5);
        CHECK(object.at("engine").as_object().contains("roof"));
    }

    TEST_CASE("tasks: an id that leads out of the tasks folder is as unknown as any other") {
        for (const char* id : {"nosuch", "", "..", "../tasks/sgemm", "/etc"}) {
            CAPTURE(id);
            CHECK_THROWS_AS(harnesses::find_task(id), harnesses::UsageError);
        }
        CHECK(harnesses::find_task("sgemm").id == "sgemm");
    }

    TEST_CASE("progress: clock texts") {
        CHECK(harnesses::clock_text(65) == "1:05");
        CHECK(harnesses::clock_text(7387) == "2:03:07");
        CHECK(harnesses::clock_text(-1) == "?");
    }

    TEST_CASE("paths: a run is found by unique prefix, the newest without a name") {
        const TemporaryDirectory home;
        for (const char* name : {"20260101-000000-aaaa", "20260102-000000-bbbb"}) {
            put_file(home / "runs" / name / "skein.db", "x");
        }
        CHECK(harnesses::find_run(home / "runs", "").filename() == "20260102-000000-bbbb");
        CHECK(harnesses::find_run(home / "runs", "20260101").filename() == "20260101-000000-aaaa");
        CHECK_THROWS_AS(harnesses::find_run(home / "runs", "2026"), harnesses::UsageError);
        CHECK_THROWS_AS(harnesses::find_run(home / "none", ""), harnesses::UsageError);
    }

    TEST_CASE("model fetch: the hash of the file in the cache is the pinned one") {
        CHECK(harnesses::sha256_of_file(model_path()) == harnesses::kDefaultModelSha256);
    }
}
