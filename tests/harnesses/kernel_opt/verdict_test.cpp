#include "harnesses/kernel_opt/verdict.h"

#include <doctest/doctest.h>

#include <limits>

using namespace skein::harnesses;

TEST_SUITE("harnesses/kernel_opt/verdict") {
    TEST_CASE("verdict: survives JSON with its samples") {
        Verdict verdict;
        verdict.status = VerdictStatus::hack;
        verdict.hack = "early_exit";
        verdict.message = "line one\nline \"two\"";
        verdict.stage = "time";
        verdict.speedup = 3.25;
        verdict.worst_error = 1e-7;
        verdict.candidate_sha256 = "ab";
        ShapeTiming shape;
        shape.case_name = "nominal";
        shape.anchor_ns = {3, 1, 2};
        shape.candidate_ns = {1, 1.5, 2};
        shape.limit_bound = "l3";
        verdict.shapes.push_back(shape);

        const Verdict back = verdict_from_json(to_json(verdict, true));
        CHECK(back.status == verdict.status);
        CHECK(back.hack == verdict.hack);
        CHECK(back.message == verdict.message);
        CHECK(back.speedup == verdict.speedup);
        CHECK(back.worst_error == verdict.worst_error);
        REQUIRE(back.shapes.size() == 1);
        CHECK(back.shapes[0].anchor_ns == shape.anchor_ns);
        CHECK(back.shapes[0].candidate_ns == shape.candidate_ns);
        CHECK(to_json(back, false) == to_json(verdict, false));
    }

    TEST_CASE("verdict: every status has a name of its own that reads back") {
        for (int i = 0; i <= static_cast<int>(VerdictStatus::harness_error); ++i) {
            Verdict verdict;
            verdict.status = static_cast<VerdictStatus>(i);
            CAPTURE(to_string(verdict.status));
            CHECK(verdict_from_json(to_json(verdict, false)).status == verdict.status);
        }
    }

    TEST_CASE("verdict: an infinite error is still JSON") {
        Verdict verdict;
        verdict.worst_error = std::numeric_limits<double>::infinity();
        CHECK(verdict_from_json(to_json(verdict, false)).worst_error > 1e100);
    }

    TEST_CASE("verdict: refuses an unknown status") {
        auto json = to_json(Verdict{}, false);
        json["status"] = "brilliant";
        CHECK_THROWS(verdict_from_json(json));
    }
}
