// Cases 31-35, 75: what a command can learn about the harness.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

TEST_SUITE_BEGIN("sandbox/attack_secrets");

TEST_CASE("31: no environment of any visible process holds the harness's secrets") {
    setenv("CANARY_TOKEN", "abc123secret", 1);
    const ProcessResult result = run(bash("cat /proc/*/environ | tr '\\0' '\\n'"));
    unsetenv("CANARY_TOKEN");
    CHECK(result.out.text().find("abc123secret") == std::string::npos);
    CHECK(result.out.text().find("PATH=") != std::string::npos);
    CHECK(result.err.text().find("/proc/1/environ: Permission denied") != std::string::npos);
}

TEST_CASE("32: the environment is exactly the stated list") {
    SandboxPolicy rules = policy();
    rules.environment.emplace("FROM_POLICY", "p");
    Command command = bash("env -u _ -u SHLVL -u PWD | cut -d= -f1 | sort | tr '\\n' ' '");
    command.environment.emplace("FROM_COMMAND", "c");
    CHECK(run(command, rules).out.text() ==
          "DEBIAN_FRONTEND EDITOR FROM_COMMAND FROM_POLICY GIT_EDITOR GIT_PAGER "
          "GIT_SEQUENCE_EDITOR GIT_TERMINAL_PROMPT HOME LANG LC_ALL LOGNAME MANPAGER PAGER PATH "
          "SHELL SKEIN_TEST_MARK TERM TMPDIR USER VISUAL ");
}

TEST_CASE("33: no descriptor of the harness is open inside") {
    // Deliberately without close-on-exec.
    const int leaked = open("/etc/passwd", O_RDONLY);
    const int far = dup2(leaked, 777);
    const ProcessResult result = run(attack({"descriptors"}));
    close(leaked);
    close(far);
    CHECK(result.ok());
    CHECK(result.out.text().empty());
}

TEST_CASE("33: exactly the passed descriptors are open, under their numbers") {
    int pipe_ends[2];
    REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
    Command command = bash("echo through >&7; /attack/skein-attack descriptors");
    command.descriptors = {{pipe_ends[1], 7}, {pipe_ends[0], 3}};
    const ProcessResult result = run(command);
    char text[16] = {};
    CHECK(read(pipe_ends[0], text, sizeof text) == 8);
    CHECK(std::string(text) == "through\n");
    CHECK(result.out.text() == "open 3\nopen 7\n");
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

TEST_CASE("34: no command line inside or outside shows the policy or secrets") {
    SandboxPolicy rules = policy();
    rules.environment.emplace("TOKEN", "hidden-in-environment");
    std::string outside;
    const Gate gate;
    Command command = bash("read -r -u 5; cat /proc/1/cmdline | tr '\\0' ' '");
    command.descriptors = gate.inside();
    command.on_started = [&](int) {
        for (const auto& entry : std::filesystem::directory_iterator("/proc"))
            outside += read_file(entry.path() / "cmdline");
        gate.open();
    };
    const ProcessResult result = run(command, rules);
    CHECK(result.out.text().find("/run/skein/init init ") == 0);
    CHECK(result.out.text().find("hidden") == std::string::npos);
    CHECK(outside.find("hidden-in-environment") == std::string::npos);
    CHECK(outside.find("bwrap") != std::string::npos);
}

TEST_CASE("35: no terminal can be written to or pushed into") {
    const ProcessResult result = run(attack({"terminal"}));
    CHECK(verdict(result, "open /dev/tty") == "ENXIO");
    CHECK(verdict(result, "TIOCSTI") == "EPERM");
    CHECK(verdict(result, "TIOCSTI with high bits") == "EPERM");
    CHECK(verdict(result, "TIOCLINUX") == "EPERM");
}

TEST_CASE("75: two runs share no temporary file") {
    CHECK(run(bash("echo x > /tmp/left; echo x > /dev/shm/left")).ok());
    const ProcessResult result = run(bash("ls -A /tmp /dev/shm"));
    CHECK(result.out.text() == "/dev/shm:\n\n/tmp:\n");
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
