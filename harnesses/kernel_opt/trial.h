#pragma once
// One candidate against the cases of its task: every call is checked, timed ones too.

#include <memory>
#include <random>

#include "harnesses/kernel_opt/case_pool.h"
#include "harnesses/kernel_opt/grader.h"
#include "harnesses/kernel_opt/symbol_rules.h"
#include "tools/profiler/kernel_timing.h"
#include "tools/profiler/machine_roof.h"

namespace skein::harnesses {

/// What a trial needs of its grader.
struct TrialParts {
    const KernelTask& task;
    const ArmLayout& layout;
    CasePool& pool;
    KernelArm& anchor;
    tools::SandboxThread& thread;
    const std::filesystem::path& host_program;
    const GraderOptions& options;
    std::uint64_t seed;
};

/// Throws Rejection as soon as the candidate is anything but right.
class Trial {
  public:
    Trial(TrialParts parts, std::filesystem::path library);

    /// Calls the candidate on a few input sets. A held-out case is not named to the agent.
    void check(const KernelCase& kernel_case, bool held_out);
    /// Interleaved pairs with the anchor, fresh inputs and a fresh process every few calls.
    ShapeTiming time(const KernelCase& kernel_case, bool final);

    double worst_error() const { return worst_error_; }
    double allowed_error() const { return allowed_error_; }
    /// A shape was too noisy to claim anything.
    bool unusable() const { return unusable_; }

  private:
    struct Step {
        std::size_t set = 0;
        Placement placement;
    };

    void restart();
    std::vector<Step> draw_steps(const KernelCase& kernel_case, std::size_t n_sets);
    Step next_step(const KernelCase& kernel_case, std::size_t n_sets, std::string_view label);
    tools::PairedSamples measure(const KernelCase& kernel_case, std::size_t n_sets, bool final,
                                 double hand_over);
    double judged_call(const KernelCase& kernel_case, const Step& step, std::string_view label);
    void judge(const KernelCase& kernel_case, const InputSet& set, const ArmCall& call,
               std::uint32_t poison, std::string_view label);
    [[noreturn]] void reject_failure(const tools::HostFailure& failure, std::string_view label);
    double hand_over_ns(const KernelCase& kernel_case);
    void check_limit(const KernelCase& kernel_case, ShapeTiming& shape);

    TrialParts parts_;
    std::filesystem::path library_;
    std::mt19937_64 random_;
    std::unique_ptr<KernelArm> candidate_;
    std::vector<Step> steps_;  ///< of the candidate's process, the next one last
    double worst_error_ = 0, allowed_error_ = 0;
    int excess_calls_ = 0;
    bool unusable_ = false;
};

/// Names of the null candidates that the rules would accept on this set.
std::vector<std::string> accepted_null_candidates(const std::vector<OutputRule>& rules,
                                                  const InputSet& set);

}  // namespace skein::harnesses
