// Cases 1-3, 15-30: processes that multiply, linger, stop, or attack the one that reports.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

using namespace std::chrono_literals;

bool within(const ProcessResult& result, std::chrono::microseconds most) {
    return result.wall_time < most;
}

TEST_SUITE_BEGIN("sandbox/attack_processes");

TEST_CASE("1: a fork bomb of the shell meets its limit and leaves nothing") {
    ResourceLimits bounds = limits(2s);
    bounds.pids = 64;
    const auto start = std::chrono::steady_clock::now();
    const ProcessResult result =
        run(bash("bomb() { bomb | bomb & }; bomb; sleep 1; echo survived"), policy(), bounds);
    CHECK(std::chrono::steady_clock::now() - start < 10s);
    CHECK(result.outcome != Outcome::setup_failed);
    CHECK(result.err.text().find("Resource temporarily unavailable") != std::string::npos);
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("2: a fork bomb in C stops at the limit of processes") {
    ResourceLimits bounds = limits();
    bounds.pids = 50;
    const ProcessResult result = run(attack({"fork-bomb", "100000"}), policy(), bounds);
    CHECK(result.ok());
    CHECK(verdict(result, "fork") == "EAGAIN");
    CHECK(verdict(result, "children") == "49");
    CHECK(result.left_processes);
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("3: the limit of processes holds whoever starts the harness") {
    // Real root would ignore it: the identity of the command must not be root's outside.
    ResourceLimits bounds = limits();
    bounds.pids = 20;
    int uid = -1;
    const Gate gate;
    Command command = bash("read -r -u 5; exec /attack/skein-attack fork-bomb 200");
    command.descriptors = gate.inside();
    command.on_started = [&](int pid) {
        const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
        uid = std::stoi(status.substr(status.find("Uid:") + 4));
        gate.open();
    };
    const ProcessResult result = run(command, policy(), bounds);
    CHECK(verdict(result, "children") == "19");
    CHECK(uid > 0);
}

TEST_CASE("15: a background daemon that holds the pipe does not hold the call") {
    const ProcessResult result = run(bash("setsid sleep 300 & echo done"));
    CHECK(result.ok());
    CHECK(result.out.text() == "done\n");
    CHECK(result.left_processes);
    CHECK(within(result, 5s));
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("16: a double-forked daemon that ignores signals is dead at the end") {
    const ProcessResult result = run(bash(
        "(setsid nohup sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' &) ; echo done"));
    CHECK(result.ok());
    CHECK(result.out.text() == "done\n");
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("18: process substitution that outlives the script does not hang") {
    const ProcessResult result =
        run(bash("cd /tmp; exec > >(tee log); echo through; until [ -s log ]; do :; done"));
    CHECK(result.ok());
    CHECK(result.out.text() == "through\n");
}

TEST_CASE("19: closing both outputs and going on ends by the deadline, not by end of file") {
    const ProcessResult result = run(bash("exec >&- 2>&-; sleep 100"), policy(), limits(500ms));
    CHECK(result.outcome == Outcome::timed_out);
    CHECK(result.wall_time >= 500ms);
}

TEST_CASE("20: closing both outputs and exiting later still gives the exit code") {
    const ProcessResult result = run(bash("exec >&- 2>&-; sleep 0.2; exit 5"));
    CHECK(result.outcome == Outcome::exited);
    CHECK(result.exit_code == 5);
}

TEST_CASE("21: a spinning command that ignores TERM is killed at its deadline") {
    const ProcessResult result =
        run(bash("echo begun; trap '' TERM INT HUP; while :; do :; done"), policy(), limits(500ms));
    CHECK(result.outcome == Outcome::timed_out);
    CHECK(result.out.text() == "begun\n");
    CHECK(result.wall_time >= 500ms);
    CHECK(within(result, 2500ms));
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("22: a command that stops itself or everything is killed at its deadline") {
    for (const char* script : {"kill -STOP $$", "kill -STOP -1; kill -STOP $$"}) {
        CAPTURE(script);
        CHECK(run(bash(script), policy(), limits(400ms)).outcome == Outcome::timed_out);
    }
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("23: killing everything reaches only the own sandbox") {
    const ProcessResult result = run(bash("sleep 50 & kill -9 -1; wait; echo alive"));
    CHECK(result.ok());
    CHECK(result.out.text() == "alive\n");
}

TEST_CASE("24: init cannot be killed") {
    const ProcessResult result = run(bash("kill -9 1; echo $?; kill -TERM 1; echo $?"));
    CHECK(result.ok());
    CHECK(result.out.text() == "1\n1\n");
}

TEST_CASE("28: orphans leave no zombies") {
    const ProcessResult result =
        run(bash("for i in 1 2 3 4 5 6 7 8 9 10; do (true & true & true &) ; done; sleep 0.2; "
                 "cat /proc/[0-9]*/stat | grep -c ') Z '"));
    CHECK(result.out.text() == "0\n");
}

TEST_CASE("29: the exit status cannot be forged through init") {
    const ProcessResult result = run(attack({"init"}));
    CHECK(result.ok());
    CHECK(verdict(result, "open /proc/1/mem") == "EACCES");
    CHECK(verdict(result, "list /proc/1/fd") == "EACCES");
}

TEST_CASE("30: init cannot be traced, read or signalled") {
    const ProcessResult result = run(attack({"init"}));
    CHECK(verdict(result, "ptrace attach") == "EPERM");
    CHECK(verdict(result, "ptrace seize") == "EPERM");
    CHECK(verdict(result, "process_vm_readv") == "EPERM");
    CHECK(verdict(result, "kill") == "EPERM");
    CHECK(verdict(result, "prlimit") == "EPERM");
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
