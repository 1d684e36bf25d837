#pragma once
// Runs one tool call to its end.

#include <boost/json/serialize.hpp>
#include <string>
#include <utility>

#include "tests/support/run_now.h"
#include "tools/registry.h"

namespace skein::test {

/// Arguments as the model writes them.
inline tools::ToolResult call_raw(tools::Registry& registry, std::string name,
                                  std::string arguments) {
    tools::ToolCall call{"call-1", std::move(name), std::move(arguments)};
    return run_now(registry.call(std::move(call)));
}

inline tools::ToolResult call_tool(tools::Registry& registry, std::string name,
                                   const boost::json::object& arguments) {
    return call_raw(registry, std::move(name), boost::json::serialize(arguments));
}

}  // namespace skein::test
