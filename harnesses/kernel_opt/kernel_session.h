#pragma once
// The optimisation of one kernel task as a shared state: what was tried, what is best, what is
// left. Proposers, tools and the report all look at this; only `evaluate` changes it.

#include <boost/asio/awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harnesses/kernel_opt/evaluation.h"
#include "harnesses/kernel_opt/grader.h"
#include "harnesses/kernel_opt/move_space.h"
#include "harnesses/kernel_opt/search.h"
#include "harnesses/kernel_opt/task.h"

namespace skein::harnesses {

/// Makes the grader when the first candidate needs one: a resumed or replayed task may need none.
using GraderFactory = std::function<std::unique_ptr<Grader>()>;

class KernelSession {
  public:
    using OnEvaluation = std::function<void(const KernelSession&, const Evaluation&)>;

    /// `generator` may be null for tasks whose source is only edited by hand. Lifetime: task,
    /// generator and journal must outlive the session.
    KernelSession(const KernelTask& task, const KernelGenerator* generator, GraderFactory factory,
                  Journal& journal, agent::Uid episode, OnEvaluation on_evaluation = {});

    /// Grades a point of the move space. Requires: a generator, and a legal configuration.
    boost::asio::awaitable<Evaluation> evaluate(Configuration configuration, std::string proposer,
                                                Arm arm, Stage stage);
    /// Grades any source.
    boost::asio::awaitable<Evaluation> evaluate_source(Candidate candidate, std::string proposer,
                                                       Arm arm, Stage stage);
    /// Compiles points side by side so that `evaluate` finds them built; known ones cost nothing.
    boost::asio::awaitable<void> prepare(std::vector<Configuration> configurations);

    const KernelTask& task() const { return *task_; }
    const KernelGenerator* generator() const { return generator_; }
    const std::vector<Evaluation>& evaluations() const { return evaluations_; }
    int count(Arm arm) const;
    /// The correct evaluation with the highest speedup of this arm (and proposer, unless empty).
    const Evaluation* best(Arm arm, std::string_view proposer = {}) const;
    std::vector<Observation> observations(Arm arm) const;
    std::vector<Configuration> tried(Arm arm) const;
    std::string source_of(const Evaluation& evaluation) const;
    /// Throws what made grading fail inside a tool call, where an exception would be taken for the
    /// tool's answer.
    void rethrow_failure() const {
        if (failure_) std::rethrow_exception(failure_);
    }
    void set_failure(std::exception_ptr failure) { failure_ = std::move(failure); }

  private:
    Grader& grader();
    boost::asio::awaitable<Evaluation> grade(Evaluation evaluation, Candidate candidate);

    const KernelTask* task_;
    const KernelGenerator* generator_;
    GraderFactory factory_;
    Journal* journal_;
    agent::Uid episode_;
    OnEvaluation on_evaluation_;
    std::unique_ptr<Grader> grader_;
    std::vector<Evaluation> evaluations_;
    std::map<std::string, std::string> sources_;  // by hash
    std::exception_ptr failure_;
};

}  // namespace skein::harnesses
