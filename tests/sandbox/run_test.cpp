#include "sandbox/run.h"

#include <doctest/doctest.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox {
namespace {

ProcessResult run_with(const std::string& runner, const ResourceLimits& limits) {
    return complete(run_plan(runner, {}, test::bash("true"), limits, Level::full, {}));
}

TEST_SUITE_BEGIN("sandbox/run");

TEST_CASE("a supervisor that ends without a report is a set-up failure") {
    const ProcessResult result = run_with("/usr/bin/true", test::limits());
    CHECK(result.outcome == Outcome::setup_failed);
    CHECK_FALSE(result.detail.empty());
    CHECK(test::children().empty());
}

TEST_CASE("what a broken supervisor prints is still captured") {
    const ProcessResult result = run_with("/usr/bin/env", test::limits());
    CHECK(result.outcome == Outcome::setup_failed);
    CHECK(result.err.text().find("run") != std::string::npos);
}

TEST_CASE("an exception of the work reaches the blocking caller") {
    CHECK_THROWS_AS(run_with("/not/there", test::limits()), Error);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
