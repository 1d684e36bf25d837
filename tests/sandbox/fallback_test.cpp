// Level landlock: no namespaces, as in containers that forbid them. Weaker, so only on request, and
// what it does not promise is named by the probe. Case 17.

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

using namespace std::chrono_literals;

Sandbox& landlock_sandbox() {
    static const std::unique_ptr<Sandbox> sandbox = [] {
        SandboxOptions options;
        options.bwrap = "/not/there/bwrap";
        return make_linux_sandbox(options);
    }();
    REQUIRE(sandbox->probe().level == Level::landlock);
    return *sandbox;
}

SandboxPolicy weak_policy(const std::filesystem::path& workspace = {}) {
    SandboxPolicy rules;
    rules.require = Level::landlock;
    rules.workspace = workspace;
    rules.environment["SKEIN_TEST_MARK"] = std::to_string(getpid());
    return rules;
}

ProcessResult run_weak(const std::string& script, const SandboxPolicy& rules = weak_policy(),
                       const ResourceLimits& bounds = limits()) {
    ProcessResult result = run_blocking(landlock_sandbox(), rules, bash(script), bounds);
    INFO(result.detail);
    CHECK(result.outcome != Outcome::setup_failed);
    CHECK(result.level == Level::landlock);
    return result;
}

TEST_SUITE_BEGIN("sandbox/fallback");

TEST_CASE("17: without a pid namespace daemons are killed as well") {
    const ProcessResult result = run_weak(
        "(setsid nohup sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' &) ; "
        "setsid sleep 300 & echo done");
    CHECK(result.ok());
    CHECK(result.out.text() == "done\n");
    CHECK(result.left_processes);
    CHECK(survivors_after(1s).empty());
    CHECK(run_weak("setsid sleep 300 & sleep 300", weak_policy(), limits(400ms)).outcome ==
          Outcome::timed_out);
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("the weak level fences writing, reading, networks and signals") {
    const TemporaryDirectory outside, workspace;
    write_file(outside.path() / "secret", "key");
    const std::string secret = outside.path() / "secret";
    const ProcessResult result = run_weak(
        "cat " + secret + "; echo x > " + secret + "; ls " + outside.path().string() +
            "; kill -0 " + std::to_string(getpid()) + "; echo >/dev/tcp/127.0.0.1/1; cat /proc/" +
            std::to_string(getpid()) + "/environ; echo in > file; cat file; echo t > $TMPDIR/t",
        weak_policy(workspace.path()));
    CHECK(result.ok());
    CHECK(result.out.text() == "in\n");
    CHECK(read_file(secret) == "key");
    CHECK(result.err.text().find("Address family not supported") != std::string::npos);
    CHECK(result.err.text().find("Operation not permitted") != std::string::npos);
}

TEST_CASE("the number of processes is limited without namespaces") {
    ResourceLimits bounds = limits();
    bounds.pids = 10;
    const ProcessResult result =
        run_weak("for i in $(seq 40); do sleep 300 & done; wait", weak_policy(), bounds);
    CHECK(result.outcome == Outcome::killed);
    CHECK(result.detail == "more processes than allowed");
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("a policy that moves paths is refused, not weakened") {
    SandboxPolicy rules = weak_policy();
    rules.mounts.push_back({Mount::Kind::read_only, "/usr/share", "/elsewhere", 0, false});
    const ProcessResult result = run_blocking(landlock_sandbox(), rules, bash("true"), limits());
    CHECK(result.outcome == Outcome::setup_failed);
    CHECK(result.detail.find("cannot move paths") != std::string::npos);
}

TEST_CASE("the probe names what the weak level leaves open") {
    bool visible = false, reason = false;
    for (const ProbeLine& line : landlock_sandbox().probe().lines) {
        visible = visible || (line.layer == "pid namespace" && !line.ok);
        reason = reason || line.remedy.find("install bubblewrap") != std::string::npos;
    }
    CHECK(visible);
    CHECK(reason);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
