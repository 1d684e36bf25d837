#pragma once
// The judge itself, blocking, as it runs inside `skein-grader`. Callers outside use grader.h.

#include <memory>

#include "harnesses/kernel_opt/case_pool.h"
#include "harnesses/kernel_opt/grader.h"

namespace skein::harnesses {

class GraderCore {
  public:
    /// Builds oracle and anchor and starts them. `options.grader_program` is not used here.
    /// Throws: std::runtime_error when they cannot be built or started, or disagree.
    /// Lifetime: task and sandbox must outlive this.
    GraderCore(const KernelTask& task, sandbox::Sandbox& sandbox, GraderOptions options);
    ~GraderCore();

    /// Throws: std::runtime_error when the infrastructure fails, never for what a candidate does.
    Verdict grade(const Candidate& candidate, Stage stage);
    void prepare(const std::vector<Candidate>& candidates);
    Verdict self_trial();
    /// Cases in which an answer that ignores the problem (zeros, a constant, the mean of the
    /// result, a copy of the input) would be accepted; empty for a sound task.
    std::vector<std::string> admission_failures();

  private:
    tools::BuildRequest build_request(const Candidate& candidate) const;
    std::vector<const KernelCase*> cases(bool timed, bool hidden_too) const;
    void check_flags(const Candidate& candidate) const;
    Verdict run_trial(const tools::BuildResult& built, Verdict verdict, Stage stage);

    const KernelTask& task_;
    GraderOptions options_;
    std::filesystem::path host_program_;
    ArmLayout layout_;
    tools::SandboxThread thread_;
    tools::KernelBuilder builder_;
    std::unique_ptr<KernelArm> anchor_;
    std::unique_ptr<CasePool> pool_;
    std::uint64_t grades_ = 0;  ///< numbers the random choices of each grade
};

std::string_view to_string(Stage stage);
/// Throws: std::runtime_error for another name.
Stage stage_from_string(std::string_view name);

}  // namespace skein::harnesses
