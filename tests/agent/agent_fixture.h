#pragma once
// What tests of the loop share: a scripted agent with fake tools on a byte vocabulary, run to its
// end on one thread.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/llm/scripted_model.h"
#include "agent/memory_recorder.h"
#include "tests/support/byte_vocabulary.h"
#include "tests/support/run_now.h"
#include "tools/function_tool.h"
#include "tools/registry.h"

namespace skein::test {

inline std::shared_ptr<const model::Tokenizer> byte_tokenizer() {
    return std::make_shared<const model::Tokenizer>(byte_vocabulary());
}

inline boost::json::object object_schema(boost::json::object properties) {
    boost::json::array required;
    for (const auto& member : properties) required.push_back(boost::json::value(member.key()));
    return {{"type", "object"}, {"properties", std::move(properties)}, {"required", required},
            {"additionalProperties", false}};
}

/// `echo {"text"}` gives its text back; `write {"path","content"}` keeps files in a map;
/// `fail` fails, `broken` throws.  Every call is counted.
struct FakeTools {
    tools::Registry registry;
    std::vector<std::string> calls;  ///< name and arguments, in the order run
    std::vector<std::pair<std::string, std::string>> files;

    FakeTools() {
        add("echo", {{"text", {{"type", "string"}}}}, [](const boost::json::object& arguments) {
            return tools::ToolResult{tools::ToolStatus::ok,
                                     std::string(arguments.at("text").as_string()), {}};
        });
        add("write", {{"path", {{"type", "string"}}}, {"content", {{"type", "string"}}}},
            [this](const boost::json::object& arguments) {
                files.emplace_back(arguments.at("path").as_string(),
                                   arguments.at("content").as_string());
                return tools::ToolResult{tools::ToolStatus::ok, "written", {}};
            });
        add("fail", {}, [](const boost::json::object&) {
            return tools::ToolResult{tools::ToolStatus::failed, "it did not work", {}};
        });
        add("broken", {}, [](const boost::json::object&) {
            return tools::ToolResult{tools::ToolStatus::harness_error, "no sandbox here", {}};
        });
    }

    void add(std::string name, boost::json::object properties,
             std::function<tools::ToolResult(const boost::json::object&)> function) {
        tools::ToolSpec spec{name, "A test tool.", object_schema(std::move(properties)),
                             tools::Effect::write};
        registry.add(tools::make_function_tool(
            std::move(spec), [this, name, function](const boost::json::object& arguments) {
                calls.push_back(name);
                return function(arguments);
            }));
    }
};

/// The text of a call as the chat format expects it.
inline std::string call_text(std::string_view name, std::string_view arguments) {
    return "<tool_call>\n{\"name\": \"" + std::string(name) +
           "\", \"arguments\": " + std::string(arguments) + "}\n</tool_call>";
}

/// An agent over a script. Members may be changed before the first use.
struct ScriptedRun {
    std::shared_ptr<const model::Tokenizer> tokenizer = byte_tokenizer();
    FakeTools fakes;
    agent::MemoryRecorder recorder;
    agent::AgentConfig config;
    agent::ScriptedOptions options;
    std::vector<agent::AgentEvent> events;
    std::unique_ptr<agent::ScriptedModel> model;
    std::unique_ptr<agent::Agent> agent;

    explicit ScriptedRun(std::vector<agent::ScriptedReply> replies)
        : replies_(std::move(replies)) {
        config.instruction = "Test.";
    }

    void start() {
        model = std::make_unique<agent::ScriptedModel>(tokenizer, replies_, options);
        agent = std::make_unique<agent::Agent>(
            config, *model, fakes.registry, recorder,
            [this](const agent::AgentEvent& event) { events.push_back(event); });
    }

    agent::RunResult run(std::string task = "Do it.") {
        start();
        return run_now(agent->run(std::move(task)));
    }

    std::string text() const { return tokenizer->decode(agent->log().tokens()); }
    std::string streamed() const {
        std::string all;
        for (const auto& event : events) {
            if (const auto* delta = std::get_if<agent::TextDelta>(&event)) all += delta->text;
        }
        return all;
    }

  private:
    std::vector<agent::ScriptedReply> replies_;
};

}  // namespace skein::test
