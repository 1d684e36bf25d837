#pragma once
// Arithmetic over limits: is there anything left, how long may a reply be, what to tell the model.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/limits.h"

namespace skein::agent {

/// A reply shorter than this is not worth opening; what the context keeps free for one.
constexpr std::int64_t kMinReplyTokens = 32;
/// The model is told its budget every so many turns, and always when less than a fifth is left.
constexpr int kBudgetNoticeTurns = 10;

/// Where a run stands.
struct Spent {
    Usage usage;
    std::int64_t context_tokens = 0;  ///< length of the log, the opened reply included
    std::int64_t context_window = 0;  ///< positions the model has
    std::chrono::milliseconds elapsed{0};
};

/// The limit that forbids another model call, or nothing.
std::optional<ExitStatus> exhausted(const RunLimits& limits, const Spent& spent);
/// Tokens the next reply may have. Requires: !exhausted(limits, spent).
int reply_allowance(const RunLimits& limits, const Spent& spent);
/// Tokens the results of a turn may have so that another reply still fits; may be negative.
std::int64_t results_allowance(const RunLimits& limits, const Spent& spent);
/// One line for the model, or empty when there is nothing to say this turn. Time is left out: a
/// clock in the prompt would make every run, and every replay, a different one.
std::string budget_notice(const RunLimits& limits, const Spent& spent);

}  // namespace skein::agent
