#pragma once
// The exit codes of every command: a contract for scripts.

#include <stdexcept>
#include <string>

namespace skein::harnesses {

enum class ExitCode {
    done = 0,
    internal_error = 1,
    usage_error = 2,  ///< wrong command line, configuration, run directory
    task_failed = 3,  ///< finished, and the task was judged failed
    budget_used = 4,  ///< a budget other than time
    stuck = 5,
    infrastructure = 6,  ///< sandbox, tools or store failed
    engine_error = 7,    ///< weights, memory, device
    mismatch = 8,        ///< replay or verification
    time_limit = 124,
    interrupted = 130,  ///< state saved, resumable
    terminated = 143
};

/// A command line or a configuration that cannot be obeyed; exit code 2.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace skein::harnesses
