// A tool in one file: a name, a JSON Schema, a function. The registry checks every call against the
// schema; what does not fit is answered with what was expected, and never repaired.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <iostream>

#include "tools/registry.h"

namespace {

using namespace skein;

class AddTool : public tools::Tool {
  public:
    AddTool() {
        const boost::json::object number{{"type", "integer"}};
        spec_ = {"add",
                 "Add two integers.",
                 {{"type", "object"},
                  {"properties", {{"a", number}, {"b", number}}},
                  {"required", {"a", "b"}},
                  {"additionalProperties", false}},
                 tools::Effect::pure};
    }
    const tools::ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<tools::ToolResult> call(boost::json::object arguments) override {
        tools::ToolResult result;
        result.text = std::to_string(arguments.at("a").as_int64() + arguments.at("b").as_int64());
        co_return result;
    }

  private:
    tools::ToolSpec spec_;
};

boost::asio::awaitable<void> try_calls(tools::Registry& registry) {
    for (const char* arguments :
         {R"({"a": 40, "b": 2})", R"({"a": "40", "b": 2})", R"({"a": 40,)"}) {
        auto pending = registry.call({"call-1", "add", arguments});
        const tools::ToolResult result = co_await std::move(pending);
        std::cout << "add " << arguments << "\n  " << to_string(result.status) << ": "
                  << result.text.substr(0, result.text.find('\n')) << "\n";
    }
}

}  // namespace

int main() {
    tools::Registry registry;
    registry.add(std::make_unique<AddTool>());
    boost::asio::io_context io;
    boost::asio::co_spawn(io, try_calls(registry), boost::asio::detached);
    io.run();
}
