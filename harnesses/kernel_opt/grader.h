#pragma once
// Judges candidates in processes that share nothing with the agent or the candidate.
// The implementation and its threat table are described at the top of grader.cpp.

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "harnesses/kernel_opt/task.h"
#include "harnesses/kernel_opt/verdict.h"
#include "sandbox/sandbox.h"

namespace skein::harnesses {

struct Candidate {
    std::string source;              ///< one C++ translation unit
    std::vector<std::string> flags;  ///< added to the task's; must be allowed by it
};

/// How far the cascade goes: compile, small cases, all cases, timing, timing with >= 25 pairs.
enum class Stage { compile, small, full, time, final };

struct GraderOptions {
    std::filesystem::path
        scratch;               ///< private directory for builds; made and removed by the grader
    std::uint64_t secret = 0;  ///< seeds of all inputs derive from it; never reaches a candidate
    std::filesystem::path grader_program;  ///< `skein-grader`; empty: found beside this executable
    int pairs = 9;                         ///< timing pairs a shape in Stage::time
    int final_pairs = 25;
    std::chrono::milliseconds shape_budget{400};
    std::chrono::milliseconds call_timeout{10000};
};

/// A grader for one task, in its own process (`skein-grader`), which itself starts builder, oracle
/// and runner sandboxes. Anchor, oracle outputs and noise are made once and reused.
class Grader {
  public:
    virtual ~Grader() = default;
    /// Requires: no other grade in flight on this machine (timing must be alone). The caller pauses
    /// its model. Throws: std::runtime_error when the grading infrastructure fails.
    virtual boost::asio::awaitable<Verdict> grade(Candidate candidate, Stage stage) = 0;
    /// Builds several candidates side by side so that later `grade` calls find them compiled.
    virtual boost::asio::awaitable<void> prepare(std::vector<Candidate> candidates) = 0;
    /// The anchor against a second copy of itself: what the machine's noise looks like today.
    virtual boost::asio::awaitable<Verdict> self_trial() = 0;
    /// Cases that would accept an answer which ignores the problem (zeros, a constant, the mean of
    /// the result, a copy of the input). Empty for a sound task.
    virtual boost::asio::awaitable<std::vector<std::string>> admission_failures() = 0;
};

/// Throws: std::runtime_error when the grader process cannot be started or the oracle not built.
std::unique_ptr<Grader> make_grader(const KernelTask& task, sandbox::Sandbox& sandbox,
                                    GraderOptions options);

}  // namespace skein::harnesses
