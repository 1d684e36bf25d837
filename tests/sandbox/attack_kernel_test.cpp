// Cases 41-53, 56: the kernel's own interfaces.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

TEST_SUITE_BEGIN("sandbox/attack_kernel");

TEST_CASE("41: io_uring is refused") {
    CHECK(verdict(run(attack({"kernel"})), "io_uring_setup") == "EPERM");
}

TEST_CASE("42: system calls of a foreign ABI kill the process") {
    for (const char* abi : {"int80", "x32"}) {
        CAPTURE(abi);
        const ProcessResult result = run(attack({abi}));
        CHECK(result.outcome == Outcome::signalled);
        CHECK(result.signal == SIGSYS);
        CHECK(result.out.text().empty());
    }
}

TEST_CASE("43: keyrings are refused") {
    const ProcessResult result = run(attack({"kernel"}));
    for (const char* name : {"keyctl", "add_key", "request_key"})
        CHECK(verdict(result, name) == "EPERM");
}

TEST_CASE("44: programs in the kernel, modules and tracing are refused") {
    const ProcessResult result = run(attack({"kernel"}));
    for (const char* name :
         {"bpf", "perf_event_open", "userfaultfd", "init_module", "kexec_load", "pidfd_getfd",
          "open_by_handle_at", "kcmp", "syslog", "swapon", "reboot"}) {
        CAPTURE(name);
        CHECK(verdict(result, name) == "EPERM");
    }
}

TEST_CASE("45: no further namespace and no mount") {
    const ProcessResult result = run(attack({"kernel"}));
    for (const char* name : {"mount", "fsopen", "move_mount", "pivot_root", "chroot", "setns",
                             "unshare", "clone with a user namespace"}) {
        CAPTURE(name);
        CHECK(verdict(result, name) == "EPERM");
    }
    // Programs must fall back to clone, whose flags the filter sees.
    CHECK(verdict(result, "clone3") == "ENOSYS");
    CHECK_FALSE(run(bash("unshare -Ur true")).ok());
    CHECK_FALSE(run(bash("bwrap --ro-bind / / true")).ok());
}

TEST_CASE("46: kernel settings are read-only") {
    const ProcessResult result = run(bash(
        "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/panic /proc/sysrq-trigger; do "
        "(echo x > $f) 2>/dev/null && echo \"$f is writable\"; done; cat "
        "/proc/sys/kernel/core_pattern"));
    CHECK(result.ok());
    CHECK(result.out.text() == read_file("/proc/sys/kernel/core_pattern"));
}

TEST_CASE("47: set-uid programs gain nothing") {
    const ProcessResult result =
        run(bash("grep -e NoNewPrivs -e CapEff -e CapBnd /proc/self/status | tr -d '\\n\\t'; su -c "
                 "id </dev/null"));
    CHECK(result.out.text() == "CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1");
    CHECK(result.exit_code != 0);
}

TEST_CASE("48: devices can be neither made nor opened") {
    const ProcessResult result = run(attack({"devices"}));
    CHECK(verdict(result, "mknod") == "EACCES");
    for (const char* name : {"/dev/mem", "/dev/sda", "/dev/vda"})
        CHECK(verdict(result, name) == "ENOENT");
    CHECK(verdict(result, "write in /dev") == "EROFS");
    CHECK(verdict(result, "/dev/null") == "ok");
}

TEST_CASE("49: limits cannot be raised") {
    const ProcessResult result = run(attack({"limits"}));
    for (const char* name : {"nofile", "nproc", "fsize", "core"}) {
        CAPTURE(name);
        CHECK(verdict(result, name) == "EPERM");
    }
}

TEST_CASE("50: the out-of-memory score cannot be lowered") {
    const ProcessResult result = run(bash("echo -1000 > /proc/self/oom_score_adj"));
    CHECK_FALSE(result.ok());
    CHECK(result.err.text().find("Read-only file system") != std::string::npos);
}

TEST_CASE("51: a crash writes no core file and is reported as its signal") {
    const TemporaryDirectory workspace;
    const ProcessResult result =
        run(bash("ulimit -c unlimited 2>/dev/null; kill -SEGV $$"), policy(workspace.path()));
    CHECK(result.outcome == Outcome::signalled);
    CHECK(result.signal == SIGSEGV);
    CHECK(std::filesystem::is_empty(workspace.path()));
}

TEST_CASE("52: shared memory is private and gone afterwards") {
    const ProcessResult first = run(bash("ipcmk -M 4096 >/dev/null; ipcs -m | grep -c 0x"));
    CHECK(first.out.text() == "1\n");
    CHECK(run(bash("ipcs -m | grep -c 0x")).out.text() == "0\n");
}

TEST_CASE("53: the clock cannot be set") {
    const ProcessResult result = run(attack({"kernel"}));
    CHECK(verdict(result, "clock_settime") == "EPERM");
    CHECK(verdict(result, "settimeofday") == "EPERM");
}

TEST_CASE("threads and processes after exec are refused when the policy says so") {
    SandboxPolicy rules = policy();
    const ProcessResult allowed = run(attack({"threads"}), rules);
    rules.deny_threads = true;
    const ProcessResult denied = run(attack({"threads"}), rules);
    for (const char* name : {"thread", "fork", "vfork"}) {
        CAPTURE(name);
        CHECK(verdict(allowed, name) == "ok");
        CHECK(verdict(denied, name) == "EAGAIN");
    }
}

TEST_CASE("tracing the own child is allowed unless the policy denies it") {
    SandboxPolicy rules = policy();
    const ProcessResult allowed = run(attack({"trace"}), rules);
    CHECK(verdict(allowed, "continue") == "ok");
    CHECK(verdict(allowed, "trace") == "ok");
    rules.allow_ptrace = false;
    CHECK(verdict(run(attack({"trace"}), rules), "trace") == "EPERM");
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
