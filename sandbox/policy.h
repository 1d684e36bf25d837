#pragma once
// From policy, command and limits to the plan of one run. Pure but for looking at the host's files.

#include "sandbox/plan.h"
#include "sandbox/sandbox.h"

namespace skein::sandbox {

/// How much of the full policy this machine allows, found by the probe.
struct Capabilities {
    Level level = Level::none;
    bool disable_userns = true;
    std::string private_tmp;  ///< for Level::landlock: an empty directory of this run
};

/// Throws: Error naming the field when the request cannot be expressed (relative target, target
/// inside the workspace that does not exist, descriptor number out of range, no program).
Plan make_plan(const SandboxPolicy& policy, const Command& command, const ResourceLimits& limits,
               const Capabilities& capabilities, const std::string& bwrap);

}  // namespace skein::sandbox
