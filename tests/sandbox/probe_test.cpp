#include "sandbox/probe.h"

#include <doctest/doctest.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

TEST_SUITE_BEGIN("sandbox/probe");

TEST_CASE("every layer of this machine is proven from inside") {
    const ProbeReport& report = full_sandbox().probe();
    CHECK(report.level == Level::full);
    CHECK(report.lines.size() >= 15);
    for (const ProbeLine& line : report.lines) {
        CAPTURE(line.layer);
        CHECK(line.ok);
        CHECK_FALSE(line.detail.empty());
    }
}

TEST_CASE("82: a machine without bwrap proves nothing and names what to install") {
    const std::string runner =
        std::filesystem::path(SKEIN_BUILD_DIR) / "libexec/skein/skein-sandbox-runner";
    const ProbeResult result = probe_machine(runner, "/not/there/bwrap");
    CHECK(result.report.level < Level::full_noproc);
    bool said = false;
    for (const ProbeLine& line : result.report.lines)
        said = said || line.remedy.find("install bubblewrap") != std::string::npos;
    CHECK(said);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
