#pragma once
// What happened, for screens: a flat variant an EventSink can switch over. PUBLIC.

#include <functional>
#include <string>
#include <variant>

#include "agent/limits.h"
#include "tools/tool.h"

namespace skein::agent {

struct TurnStarted { int turn = 0; };
struct TextDelta { std::string text; };
struct ToolStarted { tools::ToolCall call; };
struct ToolFinished {
    tools::ToolCall call;
    tools::ToolStatus status;
    std::string shown;
    double seconds = 0;
};
struct TurnFinished { int turn = 0; Usage usage; };
struct RunFinished { ExitStatus status; std::string final_message; Usage usage; };

using AgentEvent =
    std::variant<TurnStarted, TextDelta, ToolStarted, ToolFinished, TurnFinished, RunFinished>;
using EventSink = std::function<void(const AgentEvent&)>;

}  // namespace skein::agent
