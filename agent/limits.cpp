#include "agent/limits.h"

namespace skein::agent {

std::string_view to_string(ExitStatus status) {
    switch (status) {
        case ExitStatus::finished: return "finished";
        case ExitStatus::turn_limit: return "turn_limit";
        case ExitStatus::tool_call_limit: return "tool_call_limit";
        case ExitStatus::token_limit: return "token_limit";
        case ExitStatus::output_token_limit: return "output_token_limit";
        case ExitStatus::time_limit: return "time_limit";
        case ExitStatus::context_full: return "context_full";
        case ExitStatus::stuck: return "stuck";
        case ExitStatus::cancelled: return "cancelled";
        case ExitStatus::engine_error: return "engine_error";
        case ExitStatus::tool_infrastructure_error: return "tool_infrastructure_error";
        case ExitStatus::internal_error: return "internal_error";
    }
    return "unknown";
}

}  // namespace skein::agent
