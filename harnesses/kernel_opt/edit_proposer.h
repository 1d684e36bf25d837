#pragma once
// A model that edits the kernel's source through the file tools and tries it until it submits.

#include "harnesses/kernel_opt/optimise.h"

namespace skein::harnesses {

/// Fills options.workspace from the task's start/ folder (kept as it is when it exists already),
/// runs the agent to its end. The budget is options.evaluations tries.
/// Throws: std::runtime_error when the workspace cannot be made or the engine failed.
boost::asio::awaitable<agent::Usage> edit_kernel(KernelSession& session, OptimiseOptions options,
                                                 ModelSide side);

}  // namespace skein::harnesses
