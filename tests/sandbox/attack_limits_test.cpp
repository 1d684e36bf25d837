// Cases 4-13, 55, 56 and the hanging and flooding commands of public bug reports.

#include <doctest/doctest.h>
#include <signal.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

using namespace std::chrono_literals;

std::uint64_t own_rss_bytes() {
    const std::string status = read_file("/proc/self/status");
    return std::stoull(status.substr(status.find("VmRSS:") + 6)) * 1024;
}

TEST_SUITE_BEGIN("sandbox/attack_limits");

TEST_CASE("4: a memory bomb ends as out of memory") {
    ResourceLimits bounds = limits();
    bounds.memory_bytes = 128 << 20;
    const ProcessResult result = run(attack({"touch", "512"}), policy(), bounds);
    // The memory may be gone between two looks; the peak tells it then.
    CHECK(result.peak_rss_bytes > 128 << 20);
    const ProcessResult held = run(attack({"split-memory", "1", "256"}), policy(), bounds);
    CHECK(held.outcome == Outcome::out_of_memory);
}

TEST_CASE("5: memory split over processes is summed") {
    ResourceLimits bounds = limits();
    bounds.memory_bytes = 160 << 20;
    const ProcessResult result = run(attack({"split-memory", "4", "60"}), policy(), bounds);
    CHECK(result.outcome == Outcome::out_of_memory);
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("5: memory that forked workers share is counted once") {
    ResourceLimits bounds = limits();
    bounds.memory_bytes = 160 << 20;
    const ProcessResult result = run(attack({"shared-memory", "6", "64"}), policy(), bounds);
    CHECK(result.ok());
}

TEST_CASE("6: temporary file systems end at their size") {
    SandboxPolicy rules = policy();
    rules.tmp_bytes = 4 << 20;
    for (const char* place : {"/tmp", "/dev/shm"}) {
        CAPTURE(place);
        const ProcessResult result =
            run(bash("dd if=/dev/zero of=" + std::string(place) + "/fill bs=1M count=16"), rules);
        CHECK(result.err.text().find("No space left on device") != std::string::npos);
    }
    CHECK(run(bash("dd if=/dev/zero of=/dev/fill bs=1M count=1"))
              .err.text()
              .find("Read-only file system") != std::string::npos);
}

TEST_CASE("7: growth of the workspace is limited over all files") {
    const TemporaryDirectory workspace;
    ResourceLimits bounds = limits();
    bounds.disk_bytes = 24 << 20;
    const ProcessResult result =
        run(bash("for i in 1 2 3 4 5; do dd if=/dev/zero of=f$i bs=1M count=10 2>/dev/null; done; "
                 "sleep 30"),
            policy(workspace.path()), bounds);
    CHECK(result.outcome == Outcome::disk_limit);
}

TEST_CASE("9: a sparse giant meets the limit of file size") {
    const TemporaryDirectory workspace;
    const ProcessResult result = run(bash("exec truncate -s 10T giant"), policy(workspace.path()));
    CHECK(result.outcome == Outcome::signalled);
    CHECK(result.signal == SIGXFSZ);
}

TEST_CASE("10: huge output is counted exactly and kept at both ends") {
    ResourceLimits bounds = limits(60s);
    bounds.output_bytes = 1ULL << 40;
    const std::uint64_t before = own_rss_bytes();
    const ProcessResult result =
        run(bash("echo begin; yes | head -c 200000000; echo end"), policy(), bounds);
    CHECK(result.ok());
    CHECK(result.out.total_bytes == 200000010);
    CHECK(result.out.head.substr(0, 8) == "begin\ny\n");
    CHECK(result.out.tail.substr(result.out.tail.size() - 6) == "y\nend\n");
    CHECK(result.out.dropped == 200000010 - bounds.keep_head - bounds.keep_tail);
    CHECK(own_rss_bytes() < before + (32 << 20));
}

TEST_CASE("11: endless output without a line end is cut by bytes") {
    ResourceLimits bounds = limits();
    bounds.output_bytes = 8 << 20;
    const ProcessResult result = run(bash("cat /dev/zero"), policy(), bounds);
    CHECK(result.outcome == Outcome::output_limit);
    CHECK(result.out.total_bytes > bounds.output_bytes);
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("12: a flood of one stream does not block the other") {
    const ProcessResult result =
        run(bash("head -c 20000000 /dev/zero >&2; echo out; head -c 100 /dev/zero >&2"));
    CHECK(result.ok());
    CHECK(result.out.text() == "out\n");
    CHECK(result.err.total_bytes == 20000100);
}

TEST_CASE("13: bytes that are no text arrive as they are") {
    const ProcessResult result = run(bash("printf '\\000\\377\\376\\303\\050'"));
    CHECK(result.out.head == std::string("\x00\xff\xfe\xc3\x28", 5));
}

TEST_CASE("54: processor time is limited over all processes") {
    ResourceLimits bounds = limits();
    bounds.cpu_time = 600ms;
    const ProcessResult result =
        run(bash("while :; do :; done & while :; do :; done"), policy(), bounds);
    CHECK(result.outcome == Outcome::timed_out);
    CHECK(result.cpu_time >= 500ms);
}

TEST_CASE("55: E01: a command that reads its input sees the end at once") {
    for (const char* script : {"cat", "read x; echo got", "python3 -", "sort", "wc -c"}) {
        CAPTURE(script);
        const ProcessResult result = run(bash(script), policy(), limits(10s));
        CHECK(result.outcome == Outcome::exited);
        CHECK(result.exit_code == 0);
    }
    Command command = bash("read a; echo \"first $a\"; cat | wc -c");
    command.input = "line\n" + std::string(300000, 'x');
    CHECK(run(command).out.text() == "first line\n300000\n");
}

TEST_CASE("56: there is no terminal to ask a question on") {
    CHECK(run(bash("read -r x </dev/tty")).err.text().find("No such device") != std::string::npos);
    CHECK(run(bash("python3 -c 'import getpass; getpass.getpass()' </dev/null")).exit_code == 1);
}

TEST_CASE("E03: background children that hold a pipe do not hold the call") {
    for (const char* script : {"sleep 300 & echo hi", "cd /tmp; sleep 300 >o.txt & echo hi",
                               "cd /tmp; (yes >o.txt &) ; echo hi"}) {
        CAPTURE(script);
        const ProcessResult result = run(bash(script));
        CHECK(result.ok());
        CHECK(result.out.text() == "hi\n");
        CHECK(result.left_processes);
    }
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("E07: endless output neither fills memory nor starves the deadline") {
    for (const std::string script :
         {"yes", "cat /dev/zero", "/attack/skein-attack small-writes 100000000"}) {
        CAPTURE(script);
        ResourceLimits bounds = limits(1s);
        bounds.output_bytes = 1ULL << 40;
        const std::uint64_t before = own_rss_bytes();
        const ProcessResult result = run(bash(script), policy(), bounds);
        CHECK(result.outcome == Outcome::timed_out);
        CHECK(result.wall_time < 3s);
        CHECK(own_rss_bytes() < before + (64 << 20));
        CHECK(result.out.total_bytes ==
              result.out.head.size() + result.out.tail.size() + result.out.dropped);
    }
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
