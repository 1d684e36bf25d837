#include "agent/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace skein::agent {

namespace {

std::int64_t positions_left(const RunLimits& limits, const Spent& spent) {
    std::int64_t left = spent.context_window - spent.context_tokens;
    if (limits.tokens > 0) left = std::min(left, limits.tokens - spent.context_tokens);
    return left;
}

}  // namespace

std::optional<ExitStatus> exhausted(const RunLimits& limits, const Spent& spent) {
    if (limits.wall_time.count() > 0 && spent.elapsed >= limits.wall_time) {
        return ExitStatus::time_limit;
    }
    if (limits.turns > 0 && spent.usage.turns >= limits.turns) return ExitStatus::turn_limit;
    if (limits.output_tokens > 0 && spent.usage.sampled_tokens >= limits.output_tokens) {
        return ExitStatus::output_token_limit;
    }
    if (limits.tokens > 0 && spent.context_tokens >= limits.tokens) return ExitStatus::token_limit;
    const std::int64_t needed =
        limits.reply_tokens > 0 ? std::min<std::int64_t>(limits.reply_tokens, kMinReplyTokens)
                                : kMinReplyTokens;
    if (spent.context_window - spent.context_tokens < needed) return ExitStatus::context_full;
    return std::nullopt;
}

int reply_allowance(const RunLimits& limits, const Spent& spent) {
    std::int64_t allowed = positions_left(limits, spent);
    if (limits.reply_tokens > 0) allowed = std::min<std::int64_t>(allowed, limits.reply_tokens);
    if (limits.output_tokens > 0) {
        allowed = std::min(allowed, limits.output_tokens - spent.usage.sampled_tokens);
    }
    return static_cast<int>(
        std::clamp<std::int64_t>(allowed, 1, std::numeric_limits<int>::max()));
}

std::int64_t results_allowance(const RunLimits& limits, const Spent& spent) {
    // Role lines and closings of the results and of the reply to come, and the budget notice.
    constexpr std::int64_t kGlue = 128;
    return positions_left(limits, spent) - kGlue - kMinReplyTokens;
}

std::string budget_notice(const RunLimits& limits, const Spent& spent) {
    std::string parts;
    bool low = false;
    const auto add = [&](std::string_view what, std::int64_t limit, std::int64_t used) {
        const std::int64_t left = std::max<std::int64_t>(0, limit - used);
        if (!parts.empty()) parts += ", ";
        parts += fmt::format("{} of {} {}", left, limit, what);
        low = low || left * 5 < limit;
    };
    if (limits.turns > 0) add("turns", limits.turns, spent.usage.turns);
    if (limits.tool_calls > 0) add("tool calls", limits.tool_calls, spent.usage.tool_calls);
    if (limits.output_tokens > 0) {
        add("output tokens", limits.output_tokens, spent.usage.sampled_tokens);
    }
    const bool limited = !parts.empty();
    const std::int64_t window =
        limits.tokens > 0 ? std::min(limits.tokens, spent.context_window) : spent.context_window;
    add("context tokens", window, spent.context_tokens);
    const bool regular = limited && spent.usage.turns % kBudgetNoticeTurns == 0;
    if (!low && !regular) return {};
    return fmt::format("\n[left: {}]", parts);
}

}  // namespace skein::agent
