#pragma once
// The set of tools of a run: finds, validates, calls. Never throws for a bad call. PUBLIC.

#include <memory>
#include <stdexcept>
#include <vector>

#include "tools/tool.h"

namespace skein::tools {

/// A tool that cannot be offered: bad or repeated name, schema with keywords we do not enforce.
class RegistryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Registry {
  public:
    /// Throws: RegistryError. Names are unique and made of letters, digits, '_' and '-'.
    void add(std::unique_ptr<Tool> tool);
    const Tool* find(std::string_view name) const;
    std::vector<const ToolSpec*> specs() const;  ///< in the order added

    /// Parses and validates the arguments, then runs the tool. Unknown tool, malformed JSON and
    /// schema violations become `invalid_call` results that say position, expected and got, with
    /// the schema; the call is never repaired.
    boost::asio::awaitable<ToolResult> call(ToolCall call);

  private:
    std::vector<std::unique_ptr<Tool>> tools_;
};

}  // namespace skein::tools
