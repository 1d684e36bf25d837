// `proposer: scripted` and `edit`: a model edits the kernel's source through the file tools.

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>

#include "agent/store/reader.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

using namespace skein::test;

namespace {

const std::string kSkein = std::string(SKEIN_BUILD_DIR) + "/skein";

}  // namespace

TEST_SUITE("harnesses/edit") {
    TEST_CASE("edit: a scripted model reads, edits, tries and submits a faster kernel") {
        const TemporaryDirectory home;
        const std::string tasks = std::string(SKEIN_SOURCE_DIR) + "/harnesses/kernel_opt/tasks/";
        std::ifstream in(tasks + "rmsnorm/hidden/known_good.cc");
        std::string good{std::istreambuf_iterator<char>(in), {}};
        REQUIRE(!good.empty());
        std::string file;
        for (const auto& entry : std::filesystem::directory_iterator(tasks + "rmsnorm/start")) {
            file = entry.path().filename().string();
        }
        const std::string quoted = boost::json::serialize(boost::json::string(good));
        const auto call = [](const std::string& name, const std::string& arguments) {
            return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
                   "}\n</tool_call>";
        };
        const std::vector<std::string> script = {
            call("list_dir", R"({"path": "."})"),
            call("kernel_try", R"({"path": ")" + file + R"("})"),
            call("kernel_try", R"({"path": "../../../etc/passwd"})"),
            call("write_file", R"({"path": ")" + file + R"(", "content": )" + quoted + "}"),
            call("kernel_try", R"({"path": ")" + file + R"("})"),
            call("kernel_submit", "{}")};
        std::string yaml =
            "version: 1\n"
            "agents: {kernel: {limits: {turns: 20, reply_tokens: 20000, "
            "tool_output_tokens: 2000}}}\n"
            "kernel_opt:\n  tasks: [rmsnorm]\n  proposer: scripted\n  evaluations: 4\n"
            "  random_control: false\n  script:\n";
        for (const std::string& reply : script) {
            yaml += "    - " + boost::json::serialize(boost::json::string(reply)) + "\n";
        }
        put_file(home / "edit.yaml", yaml);
        const auto run = home / "run";
        const auto result = run_program(
            {kSkein, "run", (home / "edit.yaml").string(), "--run-dir", run.string(), "--json"});
        CAPTURE(result.err);
        CAPTURE(result.out);
        REQUIRE(result.exit_code == 0);
        const auto last = boost::json::parse(last_line(result.out));
        const auto& task = last.at("tasks").at(0);
        CHECK(task.at("evaluations").as_int64() == 2);
        CHECK(task.at("proposed").at("model").as_int64() == 2);
        CHECK(task.at("winner").at("proposer") == "scripted");
        CHECK(task.at("speedup").to_number<double>() > 1.0);
        const skein::agent::store::Reader reader(run);
        REQUIRE(reader.trajectories().size() == 1);
        const auto steps = reader.steps(reader.trajectories()[0].record.uid);
        REQUIRE(steps.size() == 6);
        CHECK(steps[2].calls.at(0).status == "failed");  // no path leads out of the workspace
        const auto played = run_program({kSkein, "replay", run.string(), "--mode", "playback"});
        CAPTURE(played.out);
        CHECK(played.exit_code == 0);
    }
}
