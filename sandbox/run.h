#pragma once
// Carries out one plan: starts the supervisor, drains both streams, enforces the output limit,
// and completes when the supervisor is gone.

#include "sandbox/plan.h"
#include "sandbox/sandbox.h"

namespace skein::sandbox {

/// Completes with the outcome; `level` is only copied into it. Cancellation kills the run.
/// Throws: Error when no supervisor can be started.
boost::asio::awaitable<ProcessResult> run_plan(std::string runner, Plan plan, Command command,
                                               ResourceLimits limits, Level level,
                                               std::string extra_environment);

/// Runs an awaitable to its end on a private io_context and returns its value.
ProcessResult complete(boost::asio::awaitable<ProcessResult> work);

}  // namespace skein::sandbox
