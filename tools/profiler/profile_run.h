#pragma once
// One profile as data: what was built, measured and read from the machine code.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/profiler/kernel_build.h"
#include "tools/profiler/kernel_explain.h"
#include "tools/profiler/kernel_profile.h"
#include "tools/profiler/kernel_timing.h"
#include "tools/profiler/machine_roof.h"
#include "tools/profiler/sandbox_thread.h"

namespace skein::tools {

struct ProfileRequest {
    KernelSignature signature;
    Sizes sizes;
    std::vector<std::string> flags;
    std::string source_name, source;
    std::string baseline_name, baseline;  ///< empty: none
    std::string flops, bytes;             ///< expressions; empty: unknown, buffers once
};

struct Profile {
    std::string verdict;
    double median_ns = 0, low_ns = 0, high_ns = 0;  ///< quartiles of the samples
    std::optional<SpeedEstimate> speed;             ///< against the baseline
    double baseline_ns = 0;
    double output_difference = 0;  ///< to the baseline's, in root mean squares; with a baseline
    double flops = 0, bytes = 0;   ///< flops 0: not known
    KernelLimit limit;
    RooflineInput roofline;
    LoopMix loop;
    std::vector<std::string> remarks, hints;
    std::uint32_t repeat = 1;  ///< calls a sample
    std::size_t samples = 0;
};

/// A kernel that does not build or run: the words for its author.
struct ProfileFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws: ProfileFailure, std::runtime_error when the infrastructure fails.
Profile run_profile(const ProfileRequest& request, const KernelProfileOptions& options,
                    SandboxThread& thread, KernelBuilder& builder);

/// At most 60 lines. `previous` is the last profile of the same entry, or null.
std::string render_profile(const ProfileRequest& request, const Profile& profile,
                           const Profile* previous);

}  // namespace skein::tools
