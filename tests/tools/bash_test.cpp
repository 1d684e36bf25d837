#include <doctest/doctest.h>

#include "tests/support/call_tool.h"
#include "tests/support/fake_sandbox.h"
#include "tests/support/temporary_directory.h"
#include "tools/builtin.h"

using namespace skein;
using sandbox::Outcome;
using tools::ToolResult;
using tools::ToolStatus;

namespace {

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

struct Fixture {
    test::TemporaryDirectory directory;
    tools::Workspace workspace{directory.path()};
    test::FakeSandbox sandbox;
    tools::Registry registry;
    explicit Fixture(tools::ShellOptions options = {}) {
        registry.add(tools::make_bash_tool(sandbox, workspace, std::move(options)));
    }
    ToolResult call(const boost::json::object& arguments) {
        return test::call_tool(registry, "bash", arguments);
    }
    ToolResult answer(sandbox::ProcessResult result) {
        sandbox.answers.push_back(std::move(result));
        return call({{"command", "x"}});
    }
};

}  // namespace

TEST_SUITE("tools/bash") {
    TEST_CASE("the command reaches the shell as one untouched argument, in the workspace") {
        Fixture f;
        f.sandbox.answers.push_back(test::FakeSandbox::exited(0, "hi"));
        const std::string command = "cat <<EOF\n$x \"'\\\nEOF\n# note";
        const ToolResult result = f.call({{"command", command}});
        CHECK(result.status == ToolStatus::ok);
        CHECK(contains(result.text, "hi\n[exit code 0, "));
        REQUIRE(f.sandbox.requests.size() == 1);
        const auto& request = f.sandbox.requests.front();
        CHECK(request.command.argv.back() == command);
        CHECK(request.command.input.empty());
        CHECK(request.policy.workspace == f.directory.path());
        CHECK(request.command.working_directory == f.directory.path());
        CHECK(request.limits.wall_time == std::chrono::seconds(120));
    }

    TEST_CASE("a timeout is taken in seconds, within its maximum") {
        tools::ShellOptions options;
        options.max_timeout = std::chrono::seconds(300);
        Fixture f(options);
        f.sandbox.answers.push_back(test::FakeSandbox::exited(0, ""));
        f.call({{"command", "x"}, {"timeout", 2.5}});
        CHECK(f.sandbox.requests.front().limits.wall_time == std::chrono::milliseconds(2500));
        CHECK(f.call({{"command", "x"}, {"timeout", 301}}).status == ToolStatus::invalid_call);
        CHECK(f.call({{"command", "x"}, {"timeout", 0}}).status == ToolStatus::invalid_call);
        CHECK(f.call({{"command", "x"}, {"timeout", "5"}}).status == ToolStatus::invalid_call);
        CHECK(f.call({{"command", ""}}).status == ToolStatus::invalid_call);
        CHECK(f.call({{"command", std::string_view("a\0b", 3)}}).status ==
              ToolStatus::invalid_call);
        CHECK(f.sandbox.requests.size() == 1);
    }

    TEST_CASE("E16: silence is said, and other exit codes are failures") {
        Fixture f;
        const ToolResult result = f.answer(test::FakeSandbox::exited(3, ""));
        CHECK(result.status == ToolStatus::failed);
        CHECK(result.text == "[no output]\n[exit code 3, 0.00 s]\n");
        CHECK(result.details.at("exit_code") == 3);
        CHECK(result.details.at("level") == "full");
    }

    TEST_CASE("every outcome has its own words and status") {
        Fixture f;
        sandbox::ProcessResult result = test::FakeSandbox::exited(-1, "partial\n");
        result.outcome = Outcome::timed_out;
        ToolResult answer = f.answer(result);
        CHECK(answer.status == ToolStatus::timed_out);
        CHECK(contains(answer.text, "partial\n[timed out after 120 s;"));
        result.outcome = Outcome::signalled;
        result.signal = 11;
        answer = f.answer(result);
        CHECK(answer.status == ToolStatus::failed);
        CHECK(contains(answer.text, "signal 11 (SIGSEGV)"));
        result.outcome = Outcome::out_of_memory;
        CHECK(contains(f.answer(result).text, "more than 4096 MiB of memory"));
        result.outcome = Outcome::output_limit;
        CHECK(contains(f.answer(result).text, "printed more than 64 MiB"));
        result.outcome = Outcome::disk_limit;
        CHECK(contains(f.answer(result).text, "to the disk"));
        result.outcome = Outcome::killed;
        CHECK(f.answer(result).status == ToolStatus::cancelled);
    }

    TEST_CASE("78: a sandbox that cannot be set up never looks like a failing command") {
        Fixture f;
        sandbox::ProcessResult result;
        result.outcome = Outcome::setup_failed;
        result.detail = "bwrap: no user namespaces";
        ToolResult answer = f.answer(result);
        CHECK(answer.status == ToolStatus::harness_error);
        CHECK(contains(answer.text, "not run"));
        CHECK(contains(answer.text, "no user namespaces"));
        f.sandbox.error = "level full cannot be met";
        answer = f.call({{"command", "x"}});
        CHECK(answer.status == ToolStatus::harness_error);
        CHECK(contains(answer.text, "level full cannot be met"));
    }

    TEST_CASE("dropped output and left processes are told") {
        Fixture f;
        sandbox::ProcessResult result = test::FakeSandbox::exited(0, "");
        result.out.head = "head\n";
        result.out.tail = "tail\n";
        result.out.dropped = 1000;
        result.out.total_bytes = 1010;
        result.left_processes = true;
        const ToolResult answer = f.answer(result);
        CHECK(contains(answer.text, "head\n"));
        CHECK(contains(answer.text, "1000"));
        CHECK(contains(answer.text, "tail\n"));
        CHECK(contains(answer.text, "[processes it had left running were killed]"));
        CHECK(answer.details.at("output_dropped").to_number<int>() == 1000);
    }
}
