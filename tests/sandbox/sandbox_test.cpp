// The contract of Sandbox::run: outcomes, files, cancellation, and that nothing survives whatever
// is killed and whenever. Cases 25-27, 78, 81, 82.

#include "sandbox/sandbox.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <thread>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct Pending {
    bool over = false;
    ProcessResult result;
    std::exception_ptr error;
};

void start(asio::io_context& context, const Command& command, Pending& pending,
           asio::cancellation_signal* cancel = nullptr, const SandboxPolicy& rules = policy(),
           const ResourceLimits& bounds = limits()) {
    auto completed = [&pending](std::exception_ptr error, ProcessResult result) {
        pending.over = true;
        pending.error = error;
        pending.result = std::move(result);
    };
    auto work = full_sandbox().run(rules, command, bounds);
    if (cancel == nullptr)
        asio::co_spawn(context, std::move(work), std::move(completed));
    else
        asio::co_spawn(context, std::move(work),
                       asio::bind_cancellation_slot(cancel->slot(), std::move(completed)));
}

TEST_SUITE_BEGIN("sandbox/sandbox");

TEST_CASE("a command's exit code, output and errors come back") {
    const ProcessResult result = run(bash("echo out; echo err >&2; exit 3"));
    CHECK(result.outcome == Outcome::exited);
    CHECK(result.exit_code == 3);
    CHECK(result.level == Level::full);
    CHECK(result.out.text() == "out\n");
    CHECK(result.err.text() == "err\n");
    CHECK_FALSE(result.ok());
    CHECK_FALSE(result.left_processes);
}

TEST_CASE("a fatal signal is not an exit code") {
    const ProcessResult killed = run(bash("kill -KILL $$"));
    CHECK(killed.outcome == Outcome::signalled);
    CHECK(killed.signal == SIGKILL);
    const ProcessResult exited = run(bash("exit 137"));
    CHECK(exited.outcome == Outcome::exited);
    CHECK(exited.exit_code == 137);
}

TEST_CASE("the workspace is writable, everything else is not") {
    const TemporaryDirectory workspace;
    std::filesystem::create_directory(workspace.path() / "sub");
    write_file(workspace.path() / "given", "1");
    const ProcessResult result =
        run(bash("pwd; echo 2 >> given; mkdir sub/new; mv given sub/new/; touch /usr/x /etc/x /x"),
            policy(workspace.path()));
    CHECK(result.out.text() == workspace.path().string() + "\n");
    CHECK(read_file(workspace.path() / "sub/new/given") == "12\n");
    CHECK(result.exit_code == 1);
}

TEST_CASE("what the harness adds between two runs is writable in the second") {
    const TemporaryDirectory workspace;
    CHECK(run(bash("touch a"), policy(workspace.path())).ok());
    write_file(workspace.path() / "b", "1");
    CHECK(run(bash("echo 2 >> b; rm a"), policy(workspace.path())).ok());
    CHECK(read_file(workspace.path() / "b") == "12\n");
}

TEST_CASE("runs that start at once on a fresh workspace can all write it") {
    const TemporaryDirectory workspace;
    for (int i = 0; i < 6; ++i) write_file(workspace.path() / std::to_string(i), "");
    asio::io_context context;
    std::vector<Pending> pending(6);
    for (std::size_t i = 0; i < pending.size(); ++i)
        start(context, bash("for i in 0 1 2 3 4 5; do echo x >> $i || exit 1; done"), pending[i],
              nullptr, policy(workspace.path()));
    context.run();
    for (const Pending& each : pending) CHECK(each.result.ok());
    for (int i = 0; i < 6; ++i)
        CHECK(read_file(workspace.path() / std::to_string(i)) == "x\nx\nx\nx\nx\nx\n");
}

TEST_CASE("a read-only workspace under another name cannot be changed") {
    const TemporaryDirectory workspace;
    write_file(workspace.path() / "data", "kept");
    SandboxPolicy rules = policy(workspace.path());
    rules.workspace_read_only = true;
    rules.workspace_target = "/input";
    const ProcessResult result = run(bash("pwd; cat data; echo x > data"), rules);
    CHECK(result.out.text() == "/input\nkept");
    CHECK(result.err.text().find("Read-only file system") != std::string::npos);
    CHECK(read_file(workspace.path() / "data") == "kept");
}

TEST_CASE("mounts are visible as stated and a missing optional one is skipped") {
    const TemporaryDirectory outside, workspace;
    write_file(outside.path() / "file", "seen");
    std::filesystem::create_directory(workspace.path() / "sealed");
    write_file(workspace.path() / "sealed/rule", "fixed");
    SandboxPolicy rules = policy(workspace.path());
    rules.mounts.push_back({Mount::Kind::read_only, outside.path(), "/extra/ro", 0, false});
    rules.mounts.push_back({Mount::Kind::read_only, "/does/not/exist", "/extra/no", 0, true});
    rules.mounts.push_back({Mount::Kind::tmpfs, {}, "/scratch", 1 << 20, false});
    rules.mounts.push_back({Mount::Kind::read_only, workspace.path() / "sealed",
                            workspace.path() / "sealed", 0, false});
    const ProcessResult result =
        run(bash("cat /extra/ro/file; ls /extra; echo x > /scratch/y && cat /scratch/y; "
                 "echo z > sealed/rule; rm -r sealed; cat sealed/rule"),
            rules);
    CHECK(result.out.text() == "seenro\nx\nfixed");
}

TEST_CASE("the pid reported at the start is the command's on this machine") {
    std::string name;
    const Gate gate;
    Command command = bash("read -r -u 5");
    command.descriptors = gate.inside();
    int calls = 0;
    command.on_started = [&](int pid) {
        ++calls;
        name = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe").filename();
        gate.open();
    };
    CHECK(run(command).ok());
    CHECK(calls == 1);
    CHECK(name == "bash");
}

TEST_CASE("live output holds the same bytes as the result") {
    std::string live;
    Command command = bash("for i in 1 2 3; do echo $i; done; echo e >&2");
    command.on_output = [&](int stream, std::string_view bytes) {
        if (stream == 1) live += bytes;
    };
    const ProcessResult result = run(command);
    CHECK(live == result.out.text());
}

TEST_CASE("streams can be opened again by name") {
    const ProcessResult result = run(bash("echo a > /dev/stdout; echo b > /dev/stderr"));
    CHECK(result.ok());
    CHECK(result.err.text() == "b\n");
}

TEST_CASE("compilers, sanitizers and multiprocessing work inside") {
    const TemporaryDirectory workspace;
    write_file(workspace.path() / "a.cpp",
               "#include <iostream>\n#include <thread>\nint main() { "
               "std::thread([] { std::cout << 42; }).join(); }");
    CHECK(run(bash("g++ -pthread -fsanitize=address a.cpp -o a && ./a"), policy(workspace.path()),
              limits(60s))
              .out.text() == "42");
    CHECK(
        run(bash("python3 -c 'import multiprocessing as m; l = m.Lock(); print(m.Pool(2).map(abs, "
                 "[-1, -2]))'"))
            .out.text() == "[1, 2]\n");
}

TEST_CASE("78: a set-up failure is typed and never looks like a failing command") {
    Command missing = bash("true");
    missing.argv = {"no-such-program-anywhere"};
    Command nowhere = bash("true");
    nowhere.working_directory = "/not/there";
    SandboxPolicy bad_mount = policy();
    bad_mount.mounts.push_back({Mount::Kind::read_only, "/not/there", "/x", 0, false});
    SandboxPolicy relative = policy();
    relative.mounts.push_back({Mount::Kind::read_only, "/usr", "x", 0, false});
    SandboxPolicy below_usr = policy();
    below_usr.mounts.push_back({Mount::Kind::read_only, "/usr/lib", "/usr/not/there", 0, false});
    const std::pair<ProcessResult, const char*> cases[] = {
        {run_blocking(full_sandbox(), policy(), missing, limits()), "execute the program"},
        {run_blocking(full_sandbox(), policy(), nowhere, limits()), "working directory"},
        {run_blocking(full_sandbox(), bad_mount, bash("true"), limits()), "/not/there"},
        {run_blocking(full_sandbox(), relative, bash("true"), limits()), "absolute"},
        {run_blocking(full_sandbox(), below_usr, bash("true"), limits()), "/usr/not"}};
    for (const auto& [result, said] : cases) {
        CAPTURE(said);
        INFO(result.detail);
        CHECK(result.outcome == Outcome::setup_failed);
        CHECK(result.detail.find(said) != std::string::npos);
        CHECK(result.exit_code == -1);
    }
}

TEST_CASE("cancellation kills the command and completes") {
    asio::io_context context;
    asio::cancellation_signal cancel;
    Pending pending;
    Command command = bash("setsid sleep 300 & trap '' TERM; echo ready; sleep 300");
    command.on_output = [&](int, std::string_view) {
        cancel.emit(asio::cancellation_type::terminal);
    };
    start(context, command, pending, &cancel);
    context.run();
    CHECK(pending.error == nullptr);
    CHECK(pending.result.outcome == Outcome::killed);
    CHECK(pending.result.out.text() == "ready\n");
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("an exception of a callback kills the run and reaches the caller") {
    Command command = bash("echo ready; sleep 300");
    command.on_output = [](int, std::string_view) { throw std::out_of_range("screen"); };
    CHECK_THROWS_WITH_AS(run_blocking(full_sandbox(), policy(), command, limits()), "screen",
                         std::out_of_range);
    CHECK(survivors_after(1s).empty());
    CHECK(children().empty());
}

TEST_CASE("an abandoned run leaves neither processes nor a zombie") {
    {
        asio::io_context context;
        Pending pending;
        bool ready = false;
        Command command = bash("setsid sleep 300 & echo ready; sleep 300");
        command.on_output = [&](int, std::string_view) { ready = true; };
        start(context, command, pending);
        while (!ready) context.run_one();
    }
    CHECK(survivors_after(1s).empty());
    CHECK(children().empty());
}

TEST_CASE("25: killing the supervisor or the call at any moment leaves no process") {
    std::mt19937 random(25);
    std::vector<int> supervisors;
    int n_killed = 0;
    for (int i = 0; i < 200; ++i) {
        asio::io_context context;
        asio::cancellation_signal cancel;
        Pending pending;
        start(context, bash("sleep 300"), pending, &cancel);
        asio::steady_timer timer(context);
        timer.expires_after(std::chrono::microseconds(random() % 25000));
        timer.async_wait([&](boost::system::error_code) {
            for (const int child : children()) {
                supervisors.push_back(child);
                if (i % 2 == 0) kill(child, SIGKILL);
            }
            if (i % 2 != 0) cancel.emit(asio::cancellation_type::terminal);
        });
        context.run();
        n_killed +=
            pending.over && pending.error == nullptr && pending.result.outcome != Outcome::exited
                ? 1
                : 0;
    }
    CHECK(n_killed == 200);
    CHECK(survivors_after(2s, supervisors).empty());
    CHECK(children().empty());
}

TEST_CASE("26: a killed harness takes its commands with it") {
    full_sandbox();
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t harness = fork();
    if (harness == 0) {
        Command command = bash("setsid sleep 300 & echo ready; sleep 300");
        command.on_output = [&](int, std::string_view) {
            [[maybe_unused]] const ssize_t written = write(ready[1], "x", 1);
        };
        SandboxPolicy rules = policy();
        rules.environment["SKEIN_TEST_MARK"] = std::to_string(getppid());
        run_blocking(full_sandbox(), rules, command, limits());
        _exit(0);
    }
    char byte = 0;
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK_FALSE(survivors().empty());
    kill(harness, SIGKILL);
    waitpid(harness, nullptr, 0);
    CHECK(survivors_after(3s).empty());
    close(ready[0]);
    close(ready[1]);
}

TEST_CASE("27: the thread that started a command may end") {
    asio::io_context context;
    Pending pending;
    bool running = false;
    Command command = bash("sleep 0.3; echo done");
    command.on_started = [&](int) { running = true; };
    full_sandbox();
    std::thread([&] {
        start(context, command, pending);
        while (!running && context.run_one() > 0) {
        }
    }).join();
    context.run();
    CHECK(pending.result.ok());
    CHECK(pending.result.out.text() == "done\n");
}

TEST_CASE("81: twenty runs at once on one context do not mix") {
    asio::io_context context;
    std::vector<Pending> pending(20);
    for (std::size_t i = 0; i < pending.size(); ++i)
        start(context, bash("sleep 0.1; echo " + std::to_string(i) + "; exit " + std::to_string(i)),
              pending[i], nullptr, policy(), limits(60s));
    context.run();
    for (std::size_t i = 0; i < pending.size(); ++i) {
        CAPTURE(i);
        CHECK(pending[i].result.exit_code == static_cast<int>(i));
        CHECK(pending[i].result.out.text() == std::to_string(i) + "\n");
    }
    CHECK(survivors_after(1s).empty());
}

TEST_CASE("81: runs on a pool of threads do not mix") {
    asio::io_context context;
    std::vector<Pending> pending(8);
    for (std::size_t i = 0; i < pending.size(); ++i)
        start(context, bash("echo " + std::to_string(i)), pending[i]);
    std::thread other([&] { context.run(); });
    context.run();
    other.join();
    for (std::size_t i = 0; i < pending.size(); ++i)
        CHECK(pending[i].result.out.text() == std::to_string(i) + "\n");
}

TEST_CASE("82: without bwrap nothing runs and the error says the remedy") {
    SandboxOptions options;
    options.bwrap = "/not/there/bwrap";
    const std::unique_ptr<Sandbox> sandbox = make_linux_sandbox(options);
    CHECK(sandbox->probe().level != Level::full);
    std::string message;
    try {
        run_blocking(*sandbox, policy(), bash("echo ran"), limits());
    } catch (const Error& error) {
        message = error.what();
    }
    CHECK(message.find("level 'full' is required") != std::string::npos);
    CHECK(message.find("install bubblewrap") != std::string::npos);
}

TEST_CASE("82: a bwrap that answers but cannot isolate is refused") {
    const TemporaryDirectory directory;
    const std::filesystem::path stub = directory.path() / "bwrap";
    write_file(stub,
               "#!/bin/sh\n[ \"$1\" = --version ] && exec echo bubblewrap 0.8.0\n"
               "echo 'bwrap: No permissions to create new namespace' >&2; exit 1\n");
    std::filesystem::permissions(stub, static_cast<std::filesystem::perms>(0755));
    SandboxOptions options;
    options.bwrap = stub;
    const std::unique_ptr<Sandbox> sandbox = make_linux_sandbox(options);
    CHECK_THROWS_WITH_AS(run_blocking(*sandbox, policy(), bash("echo ran"), limits()),
                         doctest::Contains("forbids user namespaces"), Error);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
