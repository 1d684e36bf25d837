#pragma once
// Runs one tool call to its end.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/serialize.hpp>
#include <exception>
#include <utility>

#include "tools/registry.h"

namespace skein::test {

/// Arguments as the model writes them.
inline tools::ToolResult call_raw(tools::Registry& registry, std::string name,
                                  std::string arguments) {
    boost::asio::io_context context;
    tools::ToolResult result;
    std::exception_ptr failure;
    tools::ToolCall call{"call-1", std::move(name), std::move(arguments)};
    boost::asio::co_spawn(context, registry.call(std::move(call)),
                          [&](std::exception_ptr error, tools::ToolResult answer) {
                              failure = error;
                              result = std::move(answer);
                          });
    context.run();
    if (failure) std::rethrow_exception(failure);
    return result;
}

inline tools::ToolResult call_tool(tools::Registry& registry, std::string name,
                                   const boost::json::object& arguments) {
    return call_raw(registry, std::move(name), boost::json::serialize(arguments));
}

}  // namespace skein::test
