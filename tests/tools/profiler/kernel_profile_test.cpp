// The profile tool on real kernels.
#include "tools/profiler/kernel_profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "tests/support/run_now.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::tools;

namespace {

struct Desk {
    Desk()
        : sandbox(sandbox::make_linux_sandbox()),
          workspace(made(directory / "work")),
          tool(make_kernel_profile_tool(*sandbox, workspace, options(directory / "builds"))) {}

    static std::filesystem::path made(std::filesystem::path path) {
        std::filesystem::create_directories(path);
        return path;
    }
    static KernelProfileOptions options(std::filesystem::path scratch) {
        KernelProfileOptions options;
        options.scratch = std::move(scratch);
        options.pairs = 5;
        options.budget = std::chrono::milliseconds(100);
        options.call_timeout = std::chrono::milliseconds(2000);
        return options;
    }

    ToolResult call(const std::string& extra, const std::string& sizes = R"({"n": 4096})") {
        const std::string text = R"({"source": "sum.cc", "entry": "sum", "arguments": [
            {"name": "x", "role": "input", "type": "f32", "count": "n"},
            {"name": "y", "role": "output", "type": "f32", "count": "1"},
            {"name": "n", "role": "size"}], "sizes": )" +
                                 sizes + extra + "}";
        return test::run_now(tool->call(boost::json::parse(text).as_object()));
    }
    void write(const std::string& name, const std::string& body) {
        test::put_file(
            directory / "work" / name,
            "extern \"C\" void sum(const float* x, float* y, long n) {\n" + body + "\n}\n");
    }

    test::TemporaryDirectory directory;
    std::unique_ptr<sandbox::Sandbox> sandbox;
    Workspace workspace;
    std::unique_ptr<Tool> tool;
};

constexpr const char* kOneChain = "float s = 0; for (long i = 0; i < n; ++i) s += x[i]; *y = s;";
constexpr const char* kFourChains =
    "float a = 0, b = 0, c = 0, d = 0; for (long i = 0; i < n / 4 * 4; i += 4) {"
    " a += x[i]; b += x[i + 1]; c += x[i + 2]; d += x[i + 3]; } *y = a + b + c + d;";

}  // namespace

TEST_SUITE("tools/profiler/kernel_profile") {
    TEST_CASE("kernel_profile: every row of the contract, in at most sixty lines") {
        Desk desk;
        desk.write("sum.cc", kOneChain);
        const ToolResult result = desk.call(R"(, "flops": "n")");
        REQUIRE_MESSAGE(result.status == ToolStatus::ok, result.text);
        for (const char* row : {"verdict", "time", "budget", "evidence", "resources", "hints",
                                "not measured", "diff"}) {
            CAPTURE(row);
            CHECK(("\n" + result.text).find("\n" + std::string(row)) != std::string::npos);
        }
        CHECK(std::count(result.text.begin(), result.text.end(), '\n') <= 60);
        CHECK(result.text.find("first profile") != std::string::npos);
    }

    TEST_CASE("kernel_profile: compares with a baseline and with the attempt before") {
        Desk desk;
        desk.write("sum.cc", kOneChain);
        REQUIRE(desk.call("").status == ToolStatus::ok);
        desk.write("sum.cc", kFourChains);
        desk.write("before.cc", kOneChain);
        const ToolResult result = desk.call(R"(, "baseline": "before.cc")");
        REQUIRE_MESSAGE(result.status == ToolStatus::ok, result.text);
        CHECK(result.text.find("x the speed of before.cc") != std::string::npos);
        CHECK(result.text.find("outputs") != std::string::npos);
        CHECK(result.text.find("first profile") == std::string::npos);
        CHECK(result.details.contains("speedup"));
    }

    TEST_CASE("kernel_profile: failures are results that say what to change") {
        Desk desk;
        desk.write("sum.cc", "undeclared;");
        const ToolResult broken = desk.call("");
        CHECK(broken.status == ToolStatus::failed);
        CHECK(broken.text.find("sum.cc does not compile") != std::string::npos);

        desk.write("sum.cc", "*(volatile int*)8 = 1; (void)x; (void)y; (void)n;");
        const ToolResult crash = desk.call("");
        CHECK(crash.status == ToolStatus::failed);
        CHECK(crash.text.find("crashed") != std::string::npos);

        desk.write("sum.cc", kOneChain);
        CHECK(desk.call("", "{}").text.find("`n`") != std::string::npos);
        CHECK(desk.call("", R"({"n": -1})").status == ToolStatus::failed);
        CHECK(desk.call("", R"({"n": 99999999999})").status == ToolStatus::failed);
        CHECK(desk.call(R"(, "flags": ["-fplugin=x.so"])").text.find("-fplugin") !=
              std::string::npos);
        CHECK(desk.call(R"(, "baseline": "nowhere.cc")").status == ToolStatus::failed);
    }
}
