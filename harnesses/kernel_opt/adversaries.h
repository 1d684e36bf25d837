#pragma once
// The grader's own tests: candidates that cheat, and what must be said of each.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "harnesses/kernel_opt/grader.h"

namespace skein::harnesses {

struct Adversary {
    std::string_view file;  ///< in cheats/
    std::string_view task;
    VerdictStatus status;   ///< what the grader must find
    std::string_view hack;  ///< for VerdictStatus::hack
};

/// One row a cheat.
const std::vector<Adversary>& adversaries();

struct AdversaryResult {
    std::string name;   ///< file, or "anchor" and "known_good" of the task: honest ones
    std::string expected;
    Verdict verdict;
    bool right = false;
};

/// Grades every cheat made for this task up to Stage::time, then the task's anchor and known-good
/// kernel, which must not be flagged. `on_result` hears of each as it is judged.
/// Throws: std::runtime_error when a source cannot be read or the grader fails.
boost::asio::awaitable<std::vector<AdversaryResult>> check_adversaries(
    const KernelTask& task, Grader& grader,
    std::function<void(const AdversaryResult&)> on_result = {});

}  // namespace skein::harnesses
