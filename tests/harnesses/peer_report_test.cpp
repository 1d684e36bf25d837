#include "harnesses/peer_report.h"

#include <doctest/doctest.h>

#include "harnesses/exit_code.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using harnesses::PeerReport;
using harnesses::UsageError;

namespace {

const char* const kReport = R"({"engine": "other 1.0", "runs": [
  {"model": "a.gguf", "kind": "speed", "threads": 2, "depth": 0,
   "pp512": {"min": 90, "median": 100, "max": 110}, "tg128": {"median": 20},
   "tg_slowest_token_ms": {"median": 7}},
  {"model": "a.gguf", "kind": "speed", "threads": 1, "depth": 0, "pp512": {"median": 50}},
  {"model": "a.gguf", "kind": "speed", "threads": 2, "depth": 4096, "pp512": 60},
  {"model": "b.gguf", "kind": "speed", "threads": 2, "depth": 0, "pp512": {"median": 7}},
  {"model": "b.gguf", "kind": "startup", "threads": 2, "load_s": {"median": 1}}]})";

}  // namespace

TEST_SUITE("harnesses/peer_report") {
    TEST_CASE("peer report: finds the figure of the model, depth and threads") {
        PeerReport report{kReport};
        CHECK(report.engine() == "other 1.0");
        report.choose_model_of("/some/where/a.gguf");
        CHECK(report.figure("pp", 512, 0, 2) == 100.0);
        CHECK(report.figure("pp", 512, 0, 1) == 50.0);
        CHECK(report.figure("pp", 512, 4096, 2) == 60.0);
        report.choose_model("b.gguf");
        CHECK(report.figure("pp", 512, 0, 2) == 7.0);
    }

    TEST_CASE("peer report: single tokens compare whatever their count, prompt pieces do not") {
        PeerReport report{kReport};
        report.choose_model("a.gguf");
        CHECK(report.figure("tg", 64, 0, 2) == 20.0);
        CHECK_FALSE(report.figure("pp", 256, 0, 2).has_value());
        CHECK_FALSE(report.figure("tg", 64, 4096, 2).has_value());
        CHECK_FALSE(report.figure("pp", 512, 0, 8).has_value());
        CHECK_FALSE(report.figure("pp", 512, 1, 2).has_value());
    }

    TEST_CASE("peer report: a report about one model is taken under any file name") {
        PeerReport report{R"([{"model": "other-name.gguf", "depth": 0, "pp512": 3}])"};
        report.choose_model_of("ours.gguf");
        CHECK(report.figure("pp", 512, 0, 2) == 3.0);
    }

    TEST_CASE("peer report: refuses to guess between models, and what is no report") {
        PeerReport report{kReport};
        CHECK_THROWS_WITH_AS(report.choose_model_of("c.gguf"),
                             "the peer's report has no model 'c.gguf'; it has: a.gguf, b.gguf",
                             UsageError);
        CHECK_THROWS_AS(PeerReport{"{"}, UsageError);
        CHECK_THROWS_AS(PeerReport{"{}"}, UsageError);
        CHECK_THROWS_AS(PeerReport{R"({"runs": [1, null]})"}, UsageError);
        CHECK_THROWS_AS(PeerReport{R"({"runs": 7})"}, UsageError);
        const test::TemporaryDirectory folder;
        CHECK_THROWS_AS(PeerReport::read(folder / "missing.json"), UsageError);
        test::put_file(folder / "report.json", kReport);
        CHECK(PeerReport::read(folder / "report.json").engine() == "other 1.0");
    }
}
