#pragma once
// What an agent may call: a named function with a JSON-Schema, and its result as data. PUBLIC.

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <string>
#include <string_view>

namespace skein::tools {

/// What a call can change; replay uses it to know what may be run again.
enum class Effect { pure, reads, idempotent_write, write, external };
std::string_view to_string(Effect effect);

struct ToolSpec {
    std::string name;
    std::string description;
    boost::json::object parameters;  ///< JSON Schema of the arguments, an object
    Effect effect = Effect::write;
};

/// A request as the model wrote it; `arguments` is the raw text.
struct ToolCall {
    std::string id;  ///< unique in its trajectory, given by us
    std::string name;
    std::string arguments;
};

enum class ToolStatus { ok, failed, invalid_call, timed_out, cancelled, harness_error };
std::string_view to_string(ToolStatus status);

struct ToolResult {
    ToolStatus status = ToolStatus::ok;
    std::string text;             ///< for the model; raw bytes, not yet cut to a budget
    boost::json::object details;  ///< for the store and screens, never shown to the model
};

class Tool {
  public:
    virtual ~Tool() = default;
    virtual const ToolSpec& spec() const = 0;
    /// `arguments` is already valid against `spec().parameters`. Expected failures are results;
    /// an exception becomes a failed result in the registry.
    virtual boost::asio::awaitable<ToolResult> call(boost::json::object arguments) = 0;
};

}  // namespace skein::tools
