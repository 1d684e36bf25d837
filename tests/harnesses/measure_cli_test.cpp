// The commands that measure a model, as a person or a script runs them.

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

using namespace skein::test;

namespace {

const std::string kModel = std::string(SKEIN_TEST_DATA) + "/fixtures/m3-recall/model-bf16.gguf";

ProgramResult skein_run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string(SKEIN_BUILD_DIR) + "/skein");
    return run_program(arguments);
}

boost::json::object last_object(const std::string& out) {
    const auto end = out.find_last_not_of('\n');
    REQUIRE(end != std::string::npos);
    const auto begin = out.rfind('\n', end);
    const auto from = begin == std::string::npos ? 0 : begin + 1;
    return boost::json::parse(out.substr(from, end + 1 - from)).as_object();
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("harnesses/measure_cli") {
    TEST_CASE("eval recall: finds all needles, the control does not, and the last object says so") {
        const auto run = skein_run(
            {"eval", "recall", "--model", kModel, "--depth", "8k", "--questions", "32", "--json"});
        CHECK(run.exit_code == 0);
        const boost::json::object result = last_object(run.out);
        CHECK(result.at("depth") == 8192);
        CHECK(result.at("questions") == 32);
        CHECK(result.at("recall") == 1.0);
        CHECK(result.at("block_recall") == 1.0);
        CHECK(result.at("control").to_number<double>() < 0.5);
    }

    TEST_CASE("eval recall: one side alone, a bound that is missed, and a table for people") {
        const auto only = skein_run({"eval", "recall", "--model", kModel, "--depth", "1k",
                                     "--questions", "4", "--control", "--json"});
        CHECK(only.exit_code == 0);
        CHECK(last_object(only.out).at("recall").is_null());
        CHECK(last_object(only.out).at("control") == 1.0);
        const auto missed = skein_run({"eval", "recall", "--model", kModel, "--depth", "1024",
                                       "--questions", "4", "--no-control", "--min-recall", "1.5"});
        CHECK(missed.exit_code == 8);
        CHECK(has(missed.out, "1.0000  (4 of 4)"));
        CHECK_FALSE(has(missed.out, "control"));
    }

    TEST_CASE("eval recall: depths and counts that make no sense are usage errors") {
        for (const char* depth : {"4q", "k", "-5", "", "10", "20m"}) {
            CAPTURE(depth);
            CHECK(skein_run({"eval", "recall", "--model", kModel, "--depth", depth}).exit_code ==
                  2);
        }
        CHECK(skein_run({"eval", "recall", "--model", kModel, "--questions", "0"}).exit_code == 2);
        CHECK(skein_run({"eval", "recall", "--control", "--no-control"}).exit_code == 2);
    }

    TEST_CASE("bench: every part measures several depths without a prefill") {
        for (const char* part : {"decode", "prefill", "select", "fork", "resume", "engine"}) {
            CAPTURE(part);
            const auto run = skein_run({"bench", part, "--model", kModel, "--depth", "1k,4k",
                                        "--fill", "synthetic", "--prompt", "16", "--decode", "2",
                                        "--reps", "2", "--json"});
            CHECK(run.exit_code == 0);
            const boost::json::object result = last_object(run.out);
            CHECK(result.at("fill") == "synthetic");
            CHECK(result.at("rows").as_array().size() >= 2);
            for (const auto& row : result.at("rows").as_array())
                CHECK(row.at("ours").to_number<double>() > 0);
        }
    }

    TEST_CASE("bench compare: puts a peer's figures beside ours and gives the ratio") {
        const TemporaryDirectory folder;
        put_file(folder / "peer.json",
                 R"({"engine": "other", "runs": [{"model": "model-bf16.gguf", "threads": 1,
                     "depth": 1024, "pp16": {"median": 0.5}, "tg128": {"median": 0.25}}]})");
        const std::vector<std::string> arguments = {
            "bench",    "compare", "--model",  kModel, "--threads", "1", "--depth", "1k",
            "--prompt", "16",      "--decode", "2",    "--reps",    "2", "--json",  "--peer-json"};
        auto good = arguments;
        good.push_back((folder / "peer.json").string());
        const auto run = skein_run(good);
        CHECK(run.exit_code == 0);
        const auto rows = last_object(run.out).at("rows").as_array();
        REQUIRE(rows.size() == 2);
        CHECK(rows[0].at("work") == "prefill16@1024");
        CHECK(rows[1].at("work") == "decode@1024");
        CHECK(rows[0].at("peer") == 0.5);
        CHECK(rows[1].at("ratio").to_number<double>() ==
              doctest::Approx(rows[1].at("ours").to_number<double>() / 0.25));
        auto missing = arguments;
        missing.push_back((folder / "none.json").string());
        CHECK(skein_run(missing).exit_code == 2);
    }
}
