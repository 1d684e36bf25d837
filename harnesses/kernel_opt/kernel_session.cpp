#include "harnesses/kernel_opt/kernel_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/store/codec.h"

namespace skein::harnesses {

KernelSession::KernelSession(const KernelTask& task, const KernelGenerator* generator,
                             GraderFactory factory, Journal& journal, agent::Uid episode,
                             OnEvaluation on_evaluation)
    : task_(&task),
      generator_(generator),
      factory_(std::move(factory)),
      journal_(&journal),
      episode_(episode),
      on_evaluation_(std::move(on_evaluation)) {}

Grader& KernelSession::grader() {
    if (!grader_) grader_ = factory_();
    return *grader_;
}

boost::asio::awaitable<Evaluation> KernelSession::evaluate(Configuration configuration,
                                                           std::string proposer, Arm arm,
                                                           Stage stage) {
    Candidate candidate{generator_->source(configuration), generator_->flags(configuration)};
    Evaluation evaluation;
    evaluation.arm = arm;
    evaluation.proposer = std::move(proposer);
    evaluation.configuration = std::move(configuration);
    evaluation.stage = stage;
    auto graded = grade(std::move(evaluation), std::move(candidate));
    co_return co_await std::move(graded);
}

boost::asio::awaitable<Evaluation> KernelSession::evaluate_source(Candidate candidate,
                                                                  std::string proposer, Arm arm,
                                                                  Stage stage) {
    Evaluation evaluation;
    evaluation.arm = arm;
    evaluation.proposer = std::move(proposer);
    evaluation.stage = stage;
    auto graded = grade(std::move(evaluation), std::move(candidate));
    co_return co_await std::move(graded);
}

boost::asio::awaitable<Evaluation> KernelSession::grade(Evaluation evaluation,
                                                        Candidate candidate) {
    evaluation.task = task_->id;
    evaluation.index = count(evaluation.arm);
    evaluation.flags = candidate.flags;
    evaluation.source_hash = agent::store::to_hex(agent::store::sha256(candidate.source));
    sources_[evaluation.source_hash] = candidate.source;
    if (const Verdict* known = journal_->recall(evaluation)) {
        evaluation.verdict = *known;
    } else {
        // The same program graded for the other arm at the same stage is not graded twice.
        const auto same =
            std::find_if(evaluations_.begin(), evaluations_.end(), [&](const auto& e) {
                return e.source_hash == evaluation.source_hash && e.flags == evaluation.flags &&
                       e.stage == evaluation.stage && e.arm != Arm::final;
            });
        if (same != evaluations_.end() && evaluation.arm != Arm::final) {
            evaluation.verdict = same->verdict;
        } else {
            auto pending = grader().grade(candidate, evaluation.stage);
            evaluation.verdict = co_await std::move(pending);
        }
        evaluation = journal_->record(std::move(evaluation), candidate.source, episode_);
    }
    evaluations_.push_back(evaluation);
    if (on_evaluation_) on_evaluation_(*this, evaluation);
    co_return evaluation;
}

boost::asio::awaitable<void> KernelSession::prepare(std::vector<Configuration> configurations) {
    if (!grader_) co_return;  // nothing live yet: the first grade decides whether one is needed
    std::vector<Candidate> candidates;
    for (const Configuration& at : configurations) {
        candidates.push_back({generator_->source(at), generator_->flags(at)});
    }
    auto pending = grader_->prepare(std::move(candidates));
    co_await std::move(pending);
}

int KernelSession::count(Arm arm) const {
    return static_cast<int>(std::count_if(evaluations_.begin(), evaluations_.end(),
                                          [&](const Evaluation& e) { return e.arm == arm; }));
}

const Evaluation* KernelSession::best(Arm arm, std::string_view proposer) const {
    const Evaluation* best = nullptr;
    for (const Evaluation& e : evaluations_) {
        if (e.arm != arm || !e.verdict.timed()) continue;
        if (!proposer.empty() && e.proposer != proposer) continue;
        if (best == nullptr || e.verdict.speedup > best->verdict.speedup) best = &e;
    }
    return best;
}

std::vector<Observation> KernelSession::observations(Arm arm) const {
    std::vector<Observation> list;
    for (const Evaluation& e : evaluations_) {
        if (e.arm != arm || e.configuration.empty()) continue;
        const bool timed = e.verdict.timed();
        list.push_back({e.configuration, timed ? std::log(e.verdict.speedup) : kFailedLogSpeedup});
    }
    return list;
}

std::vector<Configuration> KernelSession::tried(Arm arm) const {
    std::vector<Configuration> list;
    for (const Evaluation& e : evaluations_) {
        if (e.arm == arm && !e.configuration.empty()) list.push_back(e.configuration);
    }
    return list;
}

std::string KernelSession::source_of(const Evaluation& evaluation) const {
    return sources_.at(evaluation.source_hash);
}

}  // namespace skein::harnesses
