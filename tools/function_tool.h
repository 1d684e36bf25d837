#pragma once
// A tool made of a spec and a function, for everything that answers without waiting. PUBLIC.

#include <functional>
#include <memory>

#include "tools/tool.h"

namespace skein::tools {

/// The function gets valid arguments; what it throws becomes a failed result in the registry.
std::unique_ptr<Tool> make_function_tool(
    ToolSpec spec, std::function<ToolResult(const boost::json::object& arguments)> function);

/// An optional argument of a call, or what stands for it.
std::string_view string_or(const boost::json::object& arguments, std::string_view key,
                           std::string_view otherwise);
std::uint64_t count_or(const boost::json::object& arguments, std::string_view key,
                       std::uint64_t otherwise);
bool flag_or(const boost::json::object& arguments, std::string_view key, bool otherwise);

}  // namespace skein::tools
