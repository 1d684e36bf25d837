#include "tools/function_tool.h"

namespace skein::tools {
namespace {

class FunctionTool : public Tool {
  public:
    FunctionTool(ToolSpec spec, std::function<ToolResult(const boost::json::object&)> function)
        : spec_(std::move(spec)), function_(std::move(function)) {}

    const ToolSpec& spec() const override { return spec_; }
    boost::asio::awaitable<ToolResult> call(boost::json::object arguments) override {
        co_return function_(arguments);
    }

  private:
    ToolSpec spec_;
    std::function<ToolResult(const boost::json::object&)> function_;
};

}  // namespace

std::unique_ptr<Tool> make_function_tool(
    ToolSpec spec, std::function<ToolResult(const boost::json::object&)> function) {
    return std::make_unique<FunctionTool>(std::move(spec), std::move(function));
}

std::string_view string_or(const boost::json::object& arguments, std::string_view key,
                           std::string_view otherwise) {
    const boost::json::value* value = arguments.if_contains(key);
    return value ? std::string_view(value->get_string()) : otherwise;
}

std::uint64_t count_or(const boost::json::object& arguments, std::string_view key,
                       std::uint64_t otherwise) {
    const boost::json::value* value = arguments.if_contains(key);
    return value ? value->to_number<std::uint64_t>() : otherwise;
}

bool flag_or(const boost::json::object& arguments, std::string_view key, bool otherwise) {
    const boost::json::value* value = arguments.if_contains(key);
    return value ? value->get_bool() : otherwise;
}

}  // namespace skein::tools
