#pragma once
// The tool `kernel_profile`: builds, runs, times and explains any kernel with a C entry. PUBLIC.

#include <chrono>
#include <filesystem>
#include <memory>

#include "sandbox/sandbox.h"
#include "tools/tool.h"
#include "tools/workspace.h"

namespace skein::tools {

struct KernelProfileOptions {
    std::filesystem::path scratch;  ///< private directory for builds
    std::filesystem::path
        host_program;  ///< `skein-kernel-host`; empty: found beside this executable
    int pairs = 15;
    std::chrono::milliseconds budget{800};  ///< of the timing
    std::chrono::milliseconds call_timeout{10000};
    std::uint64_t max_buffer_bytes = 256ULL << 20;  ///< all buffers of a call together
};

/// The result has at most 60 lines and always the same rows: verdict, time, budget, evidence,
/// resources, hints, not measured, diff to the previous profile of the same entry.
/// Lifetime: sandbox and workspace must outlive the tool.
std::unique_ptr<Tool> make_kernel_profile_tool(sandbox::Sandbox& sandbox,
                                               const Workspace& workspace,
                                               KernelProfileOptions options);

}  // namespace skein::tools
