#include "tools/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/json/serialize.hpp>
#include <boost/system/system_error.hpp>

#include "tools/json_arguments.h"
#include "tools/schema.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxSchemaBytes = 4000;

bool is_tool_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    };
    return !name.empty() && name.size() <= kMaxNameBytes &&
           std::all_of(name.begin(), name.end(), allowed);
}

ToolResult failure(ToolStatus status, std::string text) {
    return {status, std::move(text), {}};
}

ToolResult refuse_arguments(const ToolSpec& spec, const std::string& why) {
    std::string schema = boost::json::serialize(spec.parameters);
    if (schema.size() > kMaxSchemaBytes)
        schema = std::string(utf8_prefix(schema, kMaxSchemaBytes)) + "...";
    return failure(ToolStatus::invalid_call,
                   fmt::format("The call of {} was not run. {}\nSchema of its arguments: {}",
                               spec.name, why, schema));
}

}  // namespace

std::string_view to_string(Effect effect) {
    switch (effect) {
        case Effect::pure:
            return "pure";
        case Effect::reads:
            return "reads";
        case Effect::idempotent_write:
            return "idempotent_write";
        case Effect::write:
            return "write";
        case Effect::external:
            return "external";
    }
    return "unknown";
}

std::string_view to_string(ToolStatus status) {
    switch (status) {
        case ToolStatus::ok:
            return "ok";
        case ToolStatus::failed:
            return "failed";
        case ToolStatus::invalid_call:
            return "invalid_call";
        case ToolStatus::timed_out:
            return "timed_out";
        case ToolStatus::cancelled:
            return "cancelled";
        case ToolStatus::harness_error:
            return "harness_error";
    }
    return "unknown";
}

void Registry::add(std::unique_ptr<Tool> tool) {
    const ToolSpec& spec = tool->spec();
    if (!is_tool_name(spec.name)) {
        throw RegistryError(
            fmt::format("tool name {}: expected 1 to {} letters, digits, '_' or '-'",
                        quote(spec.name), kMaxNameBytes));
    }
    if (find(spec.name)) throw RegistryError(fmt::format("tool {} is registered twice", spec.name));
    const boost::json::value* type = spec.parameters.if_contains("type");
    if (!type || *type != "object") {
        throw RegistryError(
            fmt::format("tool {}: its parameters must have \"type\": \"object\"", spec.name));
    }
    if (const auto problem = check_schema(spec.parameters)) {
        throw RegistryError(fmt::format("tool {}: {}", spec.name, *problem));
    }
    tools_.push_back(std::move(tool));
}

const Tool* Registry::find(std::string_view name) const {
    for (const auto& tool : tools_) {
        if (tool->spec().name == name) return tool.get();
    }
    return nullptr;
}

std::vector<const ToolSpec*> Registry::specs() const {
    std::vector<const ToolSpec*> specs;
    for (const auto& tool : tools_) specs.push_back(&tool->spec());
    return specs;
}

boost::asio::awaitable<ToolResult> Registry::call(ToolCall call) {
    const auto found = std::find_if(tools_.begin(), tools_.end(), [&](const auto& tool) {
        return tool->spec().name == call.name;
    });
    if (found == tools_.end()) {
        std::vector<std::string> names;
        for (const auto& tool : tools_) names.push_back(tool->spec().name);
        const std::string near = nearest(call.name, names);
        co_return failure(ToolStatus::invalid_call,
                          fmt::format("There is no tool {}{} Tools: {}.", quote(call.name),
                                      near.empty() ? "." : "; did you mean \"" + near + "\"?",
                                      fmt::join(names, ", ")));
    }
    Tool& tool = **found;
    ParsedArguments parsed = parse_arguments(call.arguments);
    if (!parsed.object) co_return refuse_arguments(tool.spec(), "Its arguments: " + parsed.error);
    if (const auto violation = validate(*parsed.object, tool.spec().parameters)) {
        co_return refuse_arguments(tool.spec(), *violation);
    }
    ToolResult result;
    try {
        boost::asio::awaitable<ToolResult> running = tool.call(std::move(*parsed.object));
        result = co_await std::move(running);
    } catch (const boost::system::system_error& error) {
        const bool cancelled = error.code() == boost::asio::error::operation_aborted;
        result = failure(cancelled ? ToolStatus::cancelled : ToolStatus::failed, error.what());
    } catch (const std::exception& error) {
        result = failure(ToolStatus::failed, error.what());
    }
    co_return result;
}

}  // namespace skein::tools
