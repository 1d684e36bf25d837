#pragma once
// Everything a run may use, as named fields, and why a run ended. PUBLIC.

#include <chrono>
#include <cstdint>
#include <string_view>

namespace skein::agent {

/// 0 means no limit of that kind.
struct RunLimits {
    int turns = 0;
    int tool_calls = 0;
    std::int64_t tokens = 0;         ///< whole context: prompt and sampled
    std::int64_t output_tokens = 0;  ///< sampled over the run
    int reply_tokens = 2048;         ///< sampled in one turn
    std::chrono::milliseconds wall_time{0};
    int tool_output_tokens = 4096;  ///< of one tool result
    int same_action = 6;  ///< in a row: one call with one result, or turns that ran nothing
};

enum class ExitStatus {
    finished,      ///< the model gave a final answer, or a tool ended the run
    turn_limit, tool_call_limit, token_limit, output_token_limit, time_limit, context_full,
    stuck, cancelled, engine_error, tool_infrastructure_error, internal_error
};
std::string_view to_string(ExitStatus status);

struct Usage {
    std::int64_t prompt_tokens = 0;   ///< tokens appended that were not sampled
    std::int64_t sampled_tokens = 0;
    std::int64_t reused_tokens = 0;   ///< prefix tokens that needed no evaluation
    std::int64_t evaluated_tokens = 0;
    int turns = 0;
    int tool_calls = 0;
};

}  // namespace skein::agent
