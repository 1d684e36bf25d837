#include "sandbox/policy.h"

#include <doctest/doctest.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox {
namespace {

const Capabilities kFull{Level::full, true, {}};

Plan plan_of(const SandboxPolicy& policy, const Command& command = test::bash("true"),
             const ResourceLimits& limits = {}) {
    return make_plan(policy, command, limits, kFull, "/usr/bin/bwrap");
}

const PlanMount* find(const Plan& plan, const std::string& target) {
    for (const PlanMount& mount : plan.mounts)
        if (mount.target == target) return &mount;
    return nullptr;
}

TEST_SUITE_BEGIN("sandbox/policy");

TEST_CASE("the default shows /usr read-only, no home, and ends by sealing the root") {
    const Plan plan = plan_of({});
    REQUIRE(find(plan, "/usr") != nullptr);
    CHECK(find(plan, "/usr")->kind == PlanMount::read_only);
    for (const char* hidden : {"/", "/home", "/root", "/run", "/var", "/etc", "/sys"}) {
        CAPTURE(hidden);
        const PlanMount* mount = find(plan, hidden);
        CHECK((mount == nullptr || mount->kind == PlanMount::seal));
    }
    CHECK(plan.mounts.back().kind == PlanMount::seal);
    CHECK(plan.mounts.back().target == "/");
    CHECK(plan.working_directory == "/tmp");
}

TEST_CASE("nothing but the workspace, temporary places and writable mounts may change") {
    const test::TemporaryDirectory workspace;
    SandboxPolicy policy;
    policy.workspace = workspace.path();
    policy.mounts.push_back({Mount::Kind::writable, "/usr", "/w", 0, false});
    policy.mounts.push_back({Mount::Kind::read_only, "/usr", "/r", 0, false});
    CHECK(plan_of(policy).landlock_writable ==
          std::vector<std::string>{"/w", "/tmp", "/dev/shm", workspace.path()});
    policy.workspace_read_only = true;
    CHECK(plan_of(policy).landlock_writable.size() == 3);
}

TEST_CASE("what cannot be expressed is refused with the field's name") {
    const test::TemporaryDirectory workspace;
    const auto refused = [](const auto& change, const char* said) {
        SandboxPolicy policy;
        Command command = test::bash("true");
        ResourceLimits limits;
        change(policy, command, limits);
        CAPTURE(said);
        CHECK_THROWS_WITH_AS(plan_of(policy, command, limits), doctest::Contains(said), Error);
    };
    using P = SandboxPolicy;
    using C = Command;
    using L = ResourceLimits;
    refused([](P&, C& c, L&) { c.argv.clear(); }, "command is empty");
    refused([](P&, C& c, L&) { c.argv[1] = std::string("a\0b", 3); }, "NUL");
    refused([](P&, C& c, L&) { c.descriptors = {{1, 2}}; }, "3..255");
    refused([](P&, C& c, L&) { c.descriptors = {{1, 5}, {1, 5}}; }, "twice");
    refused([](P& p, C&, L&) { p.workspace = "/"; }, "root of the machine");
    refused([](P& p, C&, L&) { p.workspace = "/not/there"; }, "/not/there");
    refused([](P& p, C&, L&) { p.environment.emplace("A=B", "x"); }, "A=B");
    refused([](P&, C&, L& l) { l.wall_time = std::chrono::milliseconds(0); }, "wall_time");
    refused([](P&, C&, L& l) { l.pids = 0; }, "pids");
    refused(
        [&](P& p, C&, L&) {
            p.workspace = workspace.path();
            p.mounts.push_back(
                {Mount::Kind::read_only, "/usr", workspace.path() / ".git", 0, false});
        },
        "create it first");
    CHECK(std::filesystem::is_empty(workspace.path()));
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
