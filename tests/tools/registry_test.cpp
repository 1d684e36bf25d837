#include "tools/registry.h"

#include <doctest/doctest.h>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "tests/support/call_tool.h"
#include "tools/function_tool.h"

using namespace skein;
using tools::ToolResult;
using tools::ToolStatus;

namespace {

tools::ToolSpec echo_spec(std::string name = "echo") {
    return {std::move(name),
            "Says it.",
            {{"type", "object"},
             {"properties", {{"text", {{"type", "string"}}}}},
             {"required", {"text"}},
             {"additionalProperties", false}},
            tools::Effect::pure};
}

std::unique_ptr<tools::Tool> echo(int& calls) {
    return tools::make_function_tool(echo_spec(), [&calls](const boost::json::object& arguments) {
        ++calls;
        return ToolResult{ToolStatus::ok, std::string(arguments.at("text").as_string()), {}};
    });
}

std::unique_ptr<tools::Tool> throwing(std::function<void()> act) {
    return tools::make_function_tool(echo_spec("boom"), [act](const boost::json::object&) {
        act();
        return ToolResult{};
    });
}

}  // namespace

TEST_SUITE("tools/registry") {
    TEST_CASE("a valid call runs the tool and returns its result") {
        int calls = 0;
        tools::Registry registry;
        registry.add(echo(calls));
        const ToolResult result = test::call_raw(registry, "echo", R"({"text": "hi"})");
        CHECK(result.status == ToolStatus::ok);
        CHECK(result.text == "hi");
        CHECK(calls == 1);
        REQUIRE(registry.specs().size() == 1);
        CHECK(registry.find("echo") != nullptr);
        CHECK(registry.find("Echo") == nullptr);
    }

    TEST_CASE(
        "C01: a broken call is not executed, says position and schema, and its sibling runs") {
        int calls = 0;
        tools::Registry registry;
        registry.add(echo(calls));
        for (const char* text :
             {R"({"text": "a",})", R"({'text': 'a'})", R"({text: "a"})", R"({"text": "a"\n})",
              R"([{"text": "a"}])", "", R"({"text": 1})", R"({"txt": "a"})"}) {
            CAPTURE(text);
            calls = 0;
            const ToolResult bad = test::call_raw(registry, "echo", text);
            CHECK(bad.status == ToolStatus::invalid_call);
            CHECK(calls == 0);
            CHECK(bad.text.find("was not run") != std::string::npos);
            CHECK(bad.text.find("\"additionalProperties\":false") != std::string::npos);
            CHECK(test::call_raw(registry, "echo", R"({"text": "b"})").text == "b");
            CHECK(calls == 1);
        }
    }

    TEST_CASE("an unknown tool lists the names and suggests the near one") {
        int calls = 0;
        tools::Registry registry;
        registry.add(echo(calls));
        registry.add(throwing([] {}));
        const ToolResult result = test::call_raw(registry, "ehco", "{}");
        CHECK(result.status == ToolStatus::invalid_call);
        CHECK(result.text ==
              "There is no tool \"ehco\"; did you mean \"echo\"? Tools: echo, boom.");
        CHECK(test::call_raw(registry, "\n\xff", "{}").text ==
              "There is no tool \"\\n\\xff\". Tools: echo, boom.");
    }

    TEST_CASE("what a tool throws becomes a result") {
        tools::Registry failing, cancelled;
        failing.add(throwing([] { throw std::runtime_error("no luck"); }));
        cancelled.add(throwing(
            [] { throw boost::system::system_error(boost::asio::error::operation_aborted); }));
        const ToolResult result = test::call_raw(failing, "boom", R"({"text": ""})");
        CHECK(result.status == ToolStatus::failed);
        CHECK(result.text == "no luck");
        CHECK(test::call_raw(cancelled, "boom", R"({"text": ""})").status == ToolStatus::cancelled);
    }

    TEST_CASE("tools that cannot be offered are refused at registration") {
        int calls = 0;
        tools::Registry registry;
        registry.add(echo(calls));
        CHECK_THROWS_WITH_AS(registry.add(echo(calls)), "tool echo is registered twice",
                             tools::RegistryError);
        const auto add = [&](tools::ToolSpec spec) {
            registry.add(tools::make_function_tool(
                std::move(spec), [](const boost::json::object&) { return ToolResult{}; }));
        };
        CHECK_THROWS_AS(add(echo_spec("two words")), tools::RegistryError);
        CHECK_THROWS_AS(add(echo_spec("")), tools::RegistryError);
        tools::ToolSpec unknown = echo_spec("unknown");
        unknown.parameters["oneOf"] = boost::json::array();
        CHECK_THROWS_WITH_AS(add(unknown),
                             "tool unknown: schema: the keyword \"oneOf\" is not enforced here",
                             tools::RegistryError);
        tools::ToolSpec untyped = echo_spec("untyped");
        untyped.parameters.erase("type");
        CHECK_THROWS_AS(add(untyped), tools::RegistryError);
        CHECK(registry.specs().size() == 1);
    }

    TEST_CASE("statuses and effects are spelled as on the wire") {
        CHECK(tools::to_string(ToolStatus::invalid_call) == "invalid_call");
        CHECK(tools::to_string(ToolStatus::harness_error) == "harness_error");
        CHECK(tools::to_string(tools::Effect::idempotent_write) == "idempotent_write");
    }
}
