#pragma once
// The set of tools of a run: finds, validates, calls. Never throws for a bad call. PUBLIC.

#include <memory>
#include <vector>

#include "tools/tool.h"

namespace skein::tools {

class Registry {
  public:
    /// Requires: a name that no other tool of this registry has.
    void add(std::unique_ptr<Tool> tool);
    const Tool* find(std::string_view name) const;
    std::vector<const ToolSpec*> specs() const;  ///< in the order added

    /// Parses and validates the arguments, then runs the tool. Unknown tool, malformed JSON and
    /// schema violations become `invalid_call` results that say position, expected and got, with the
    /// schema; the call is never repaired.
    boost::asio::awaitable<ToolResult> call(ToolCall call);

  private:
    std::vector<std::unique_ptr<Tool>> tools_;
};

}  // namespace skein::tools
