// The bash tool in the real sandbox, beside the file tools on the same workspace.
#include <doctest/doctest.h>

#include "tests/support/call_tool.h"
#include "tests/support/temporary_directory.h"
#include "tools/builtin.h"

using namespace skein;
using tools::ToolResult;
using tools::ToolStatus;

namespace {

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

sandbox::Sandbox& real_sandbox() {
    static const std::unique_ptr<sandbox::Sandbox> sandbox = sandbox::make_linux_sandbox();
    return *sandbox;
}

struct Fixture {
    test::TemporaryDirectory directory;
    tools::Workspace workspace{directory.path()};
    tools::Registry registry;
    Fixture() {
        registry.add(tools::make_bash_tool(real_sandbox(), workspace));
        registry.add(tools::make_write_file_tool(workspace));
        registry.add(tools::make_edit_file_tool(workspace));
        registry.add(tools::make_read_file_tool(workspace));
    }
    ToolResult run(const std::string& command, double timeout = 20) {
        return test::call_tool(registry, "bash", {{"command", command}, {"timeout", timeout}});
    }
    // Output without the line that says how it ended.
    std::string output(const std::string& command) {
        const ToolResult result = run(command);
        CAPTURE(command);
        CAPTURE(result.text);
        CHECK(result.status == ToolStatus::ok);
        return result.text.substr(0, result.text.rfind("[exit code"));
    }
};

}  // namespace

TEST_SUITE("tools/bash in the sandbox") {
    TEST_CASE("E01: programs that read input see its end at once") {
        Fixture f;
        CHECK(f.output("cat; echo done") == "done\n");
        CHECK(f.output("read x; echo got $?") == "got 1\n");
    }

    TEST_CASE("both streams come in the order written, silence is said, exit codes are kept") {
        Fixture f;
        CHECK(f.output("echo 1; echo 2 >&2; echo 3") == "1\n2\n3\n");
        CHECK(f.output("true") == "[no output]\n");
        const ToolResult failed = f.run("echo no; exit 42");
        CHECK(failed.status == ToolStatus::failed);
        CHECK(contains(failed.text, "no\n[exit code 42, "));
        CHECK(contains(f.run("kill -SEGV $$").text, "signal 11 (SIGSEGV)"));
        CHECK(contains(f.run("-x").text, "exit code 127"));
    }

    TEST_CASE("E03: a background child does not hold the call and is killed, which is said") {
        Fixture f;
        for (const char* command : {"sleep 300 & echo hi", "sleep 300 >o.txt & echo hi"}) {
            const ToolResult result = f.run(command);
            CHECK(result.status == ToolStatus::ok);
            CHECK(contains(result.text, "hi\n[processes it had left running were killed]\n"));
        }
    }

    TEST_CASE("E05: a timeout keeps the partial output and says what to do") {
        Fixture f;
        const ToolResult result = f.run("echo begun; sleep 100", 1);
        CHECK(result.status == ToolStatus::timed_out);
        CHECK(contains(result.text, "begun\n[timed out after 1 s;"));
    }

    TEST_CASE("E08: bytes that are not UTF-8 come through unchanged") {
        Fixture f;
        CHECK(f.output("printf '\\360\\n'") == "\xF0\n");
    }

    TEST_CASE("E09: pipes report their last command, and closed pipes are no failure") {
        Fixture f;
        CHECK(f.output("false | cat; echo ${PIPESTATUS[0]}") == "1\n");
        CHECK(f.output("seq 90000 | head -2") == "1\n2\n");
        CHECK(f.run("set -o pipefail; (exit 42) | tail -3").status == ToolStatus::failed);
    }

    TEST_CASE("E10: nothing is glued to the command") {
        Fixture f;
        CHECK(contains(f.output("cat <<EOF\nhere\nEOF"), "here\n"));
        CHECK(f.output("echo a # note") == "a\n");
        CHECK(f.output("echo a\\") == "a\\\n");
        CHECK(contains(f.run("echo 'open").text, "unexpected EOF"));
        CHECK(f.output("echo '\"$(x)`' \"don't\"") == "\"$(x)` don't\n");
    }

    TEST_CASE("E11: every call is a new shell in the workspace root, files stay") {
        Fixture f;
        f.run("mkdir sub; cd sub; export K=1; echo x > here; set -e; f() { :; }");
        CHECK(
            f.output(
                "pwd; echo [$K]; cat sub/here; type f 2>/dev/null || echo gone; false; echo on") ==
            f.workspace.root().string() + "\n[]\nx\ngone\non\n");
    }

    TEST_CASE("E13: names and contents keep their bytes") {
        Fixture f;
        CHECK(f.output("echo Ωж > naïve-Ωж.txt; ls; cat naïve-Ωж.txt") == "naïve-Ωж.txt\nΩж\n");
    }

    TEST_CASE("the shell and the file tools work on each other's files") {
        Fixture f;
        f.run("mkdir -p d; printf '#!/bin/sh\\necho old\\n' > d/run.sh; chmod 755 d/run.sh");
        const ToolResult edited =
            test::call_tool(f.registry, "edit_file",
                            {{"path", "d/run.sh"}, {"old_text", "old"}, {"new_text", "new"}});
        CHECK(edited.status == ToolStatus::ok);
        CHECK(f.output("d/run.sh") == "new\n");
        test::call_tool(f.registry, "write_file", {{"path", "fresh/x.txt"}, {"content", "1\n"}});
        CHECK(f.output("echo 2 >> fresh/x.txt; touch fresh/y; cat fresh/x.txt") == "1\n2\n");
        CHECK(contains(test::call_tool(f.registry, "read_file", {{"path", "fresh/x.txt"}}).text,
                       "     2\t2\n"));
    }

    TEST_CASE("63: a link made by a command does not lead a file tool out") {
        Fixture f;
        f.run("ln -s /etc/passwd l; ln -s .. up");
        CHECK(test::call_tool(f.registry, "read_file", {{"path", "l"}}).status ==
              ToolStatus::failed);
        CHECK(
            test::call_tool(f.registry, "write_file", {{"path", "up/x"}, {"content", ""}}).status ==
            ToolStatus::failed);
    }
}
