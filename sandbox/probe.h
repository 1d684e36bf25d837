#pragma once
// Finds out what this machine can enforce by attacking a sandbox from inside.

#include "sandbox/policy.h"
#include "sandbox/sandbox.h"

namespace skein::sandbox {

struct ProbeResult {
    ProbeReport report;
    Capabilities capabilities;
};

/// Tries the levels from the strongest down and keeps the first that its own attacks prove.
/// Takes some 30 ms where everything works. Never throws for a missing layer: the report says it.
ProbeResult probe_machine(const std::string& runner, const std::string& bwrap);

}  // namespace skein::sandbox
