#include "harnesses/kernel_opt/optimise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harnesses/kernel_opt/edit_proposer.h"
#include "harnesses/kernel_opt/kernel_tools.h"
#include "harnesses/kernel_opt/move_proposer.h"

namespace skein::harnesses {
namespace {

using boost::asio::awaitable;

constexpr std::array<std::string_view, 5> kProposers = {"moves", "search", "random", "edit",
                                                        "scripted"};

struct Planned {
    Configuration configuration;
    std::string proposer;
    Arm arm;
};

/// The next candidates of both arms that need no model. The random arm is drawn first with its own
/// generator, so that it never depends on what the main arm does.
std::vector<Planned> plan_round(const KernelSession& session, const OptimiseOptions& options,
                                int main_count, int control_count, SearchRng& main_rng,
                                SearchRng& control_rng) {
    const KernelGenerator& generator = *session.generator();
    std::vector<Planned> plan;
    auto tried = session.tried(Arm::random);
    for (int i = 0; i < control_count; ++i) {
        auto at = propose_uniform(generator, tried, control_rng);
        if (!at) break;
        tried.push_back(*at);
        plan.push_back({std::move(*at), "random", Arm::random});
    }
    tried = session.tried(Arm::main);
    const auto observations = session.observations(Arm::main);
    for (int i = 0; i < main_count; ++i) {
        auto at = options.proposer == Proposer::random
                      ? propose_uniform(generator, tried, main_rng)
                      : propose_thompson(generator, observations, tried, options.search, main_rng);
        if (!at) break;
        tried.push_back(*at);
        plan.push_back({std::move(*at), options.proposer == Proposer::random ? "random" : "search",
                        Arm::main});
    }
    return plan;
}

awaitable<void> run_round(KernelSession& session, std::vector<Planned> plan) {
    std::vector<Configuration> configurations;
    for (const Planned& item : plan) configurations.push_back(item.configuration);
    auto building = session.prepare(std::move(configurations));
    co_await std::move(building);
    for (Planned& item : plan) {
        auto pending = session.evaluate(std::move(item.configuration), std::move(item.proposer),
                                        item.arm, Stage::time);
        co_await std::move(pending);
    }
}

awaitable<void> search_moves(KernelSession& session, OptimiseOptions options, ModelSide side,
                             std::function<bool()> out_of_time, TaskResult& result) {
    SearchRng main_rng(options.seed * 2 + 1), control_rng(options.seed * 2 + 2);
    std::unique_ptr<MoveProposer> model;
    if (options.proposer == Proposer::moves) {
        model = std::make_unique<MoveProposer>(session, options, side);
    }
    while (session.count(Arm::main) < options.evaluations) {
        if (session.count(Arm::main) > 0 && out_of_time()) {
            result.stopped_by_time = true;
            break;
        }
        const int before = session.count(Arm::main);
        const int round = std::min(options.round, options.evaluations - before);
        const int due = model && model->usable()
                            ? static_cast<int>((before + round) * options.model_share + 1e-9) -
                                  model->proposed()
                            : 0;
        const int by_model = std::clamp(due, 0, round);
        auto plan = plan_round(session, options, round - by_model,
                               options.random_control ? round : 0, main_rng, control_rng);
        auto running = run_round(session, std::move(plan));
        co_await std::move(running);
        for (int i = 0; i < by_model; ++i) {
            auto pending = model->propose();
            co_await std::move(pending);
        }
        if (session.count(Arm::main) == before) break;  // the space is exhausted
    }
    if (model) result.usage = model->finish();
}

awaitable<void> time_flags(KernelSession& session, TaskResult& result) {
    const KernelGenerator* generator = session.generator();
    if (generator == nullptr) co_return;
    for (std::size_t d = 0; d < generator->dimensions().size(); ++d) {
        if (generator->dimensions()[d].name != "flags") continue;
        for (std::size_t v = 1; v < generator->dimensions()[d].values.size(); ++v) {
            Configuration at(generator->dimensions().size(), 0);
            at[d] = static_cast<int>(v);
            if (!generator->legal(at)) continue;
            Candidate candidate{session.task().anchor_source, generator->flags(at)};
            auto pending =
                session.evaluate_source(std::move(candidate), "flags", Arm::flags, Stage::time);
            const Evaluation evaluation = co_await std::move(pending);
            if (evaluation.verdict.timed()) {
                result.flags_only = std::max(result.flags_only, evaluation.verdict.speedup);
            }
        }
    }
}

/// The best distinct programs of an arm, best first.
std::vector<Evaluation> leaders(const KernelSession& session, Arm arm, std::size_t limit) {
    std::vector<Evaluation> list;
    for (const Evaluation& e : session.evaluations()) {
        if (e.arm == arm && e.verdict.timed()) list.push_back(e);
    }
    std::stable_sort(list.begin(), list.end(), [](const Evaluation& a, const Evaluation& b) {
        return a.verdict.speedup > b.verdict.speedup;
    });
    std::set<std::pair<std::string, std::vector<std::string>>> seen;
    std::vector<Evaluation> distinct;
    for (Evaluation& e : list) {
        if (distinct.size() < limit && seen.emplace(e.source_hash, e.flags).second) {
            distinct.push_back(std::move(e));
        }
    }
    return distinct;
}

/// Times a program as a finalist; a noisy timing is repeated, because a neighbour may have gone.
awaitable<Evaluation> time_finalist(KernelSession& session, Candidate program, std::string proposer,
                                    int tries) {
    Evaluation evaluation;
    for (int i = 0; i < tries; ++i) {
        auto pending = session.evaluate_source(program, proposer, Arm::final, Stage::final);
        evaluation = co_await std::move(pending);
        if (evaluation.verdict.status != VerdictStatus::noisy) break;
    }
    co_return evaluation;
}

awaitable<Evaluation> retime(KernelSession& session, Evaluation candidate, int tries) {
    Candidate program{session.source_of(candidate), candidate.flags};
    auto pending = time_finalist(session, std::move(program), candidate.proposer, tries);
    Evaluation evaluation = co_await std::move(pending);
    evaluation.configuration = std::move(candidate.configuration);
    co_return evaluation;
}

/// The anchor graded like a finalist: what the machine's noise looks like today.
awaitable<Evaluation> time_anchor(KernelSession& session, TaskResult& result, int tries) {
    Candidate anchor{session.task().anchor_source, {}};
    auto pending = time_finalist(session, std::move(anchor), "anchor", tries);
    Evaluation evaluation = co_await std::move(pending);
    if (evaluation.verdict.timed()) {
        result.noise_low = evaluation.verdict.speedup_low;
        result.noise_high = evaluation.verdict.speedup_high;
    }
    co_return evaluation;
}

/// In-loop times choose who is timed again; only the second timing is a result. A search that was
/// stopped by time has one finalist and repeats nothing, or the end would take as long again.
/// Whether it was is in the record, so a resumed run decides the same.
awaitable<void> decide(KernelSession& session, const OptimiseOptions& options, TaskResult& result) {
    const int tries = result.stopped_by_time ? 1 : 3;
    const int finalists = result.stopped_by_time ? 1 : options.finalists;
    auto timing = time_anchor(session, result, tries);
    Evaluation anchor = co_await std::move(timing);
    std::optional<Evaluation> winner;
    for (Evaluation& candidate : leaders(session, Arm::main, static_cast<std::size_t>(finalists))) {
        auto pending = retime(session, std::move(candidate), tries);
        Evaluation timed = co_await std::move(pending);
        if (!timed.verdict.timed()) continue;
        if (!winner || timed.verdict.speedup > winner->verdict.speedup) winner = std::move(timed);
    }
    for (Evaluation& candidate : leaders(session, Arm::random, 1)) {
        auto pending = retime(session, std::move(candidate), tries);
        const Evaluation timed = co_await std::move(pending);
        if (timed.verdict.timed()) result.random_control = timed.verdict.speedup;
    }
    if (!winner) winner = std::move(anchor);
    result.winner = winner->verdict;
    result.winner_source = session.source_of(*winner);
    result.winner_flags = winner->flags;
    result.winner_proposer = winner->proposer;
    result.winner_description = winner->configuration.empty() || session.generator() == nullptr
                                    ? std::string()
                                    : describe(*session.generator(), winner->configuration);
    // No smaller gain is claimed than what the anchor gains over itself.
    result.improved = winner->verdict.timed() && winner->proposer != "anchor" &&
                      winner->verdict.speedup_low > std::max(1.0, result.noise_high);
}

void count_proposers(const KernelSession& session, TaskResult& result) {
    for (const Evaluation& e : session.evaluations()) {
        if (e.arm != Arm::main) continue;
        if (e.proposer == "search")
            ++result.by_search;
        else if (e.proposer == "random")
            ++result.by_random;
        else
            ++result.by_model;
    }
    result.evaluations = session.count(Arm::main);
    result.control_evaluations = session.count(Arm::random);
    result.history = session.evaluations();
}

}  // namespace

std::string_view to_string(Proposer proposer) {
    return kProposers[static_cast<std::size_t>(proposer)];
}

std::optional<Proposer> parse_proposer(std::string_view name) {
    for (std::size_t i = 0; i < kProposers.size(); ++i) {
        if (kProposers[i] == name) return static_cast<Proposer>(i);
    }
    return std::nullopt;
}

awaitable<TaskResult> optimise(KernelSession& session, OptimiseOptions options, ModelSide side,
                               std::function<bool()> out_of_time) {
    TaskResult result;
    result.id = session.task().id;
    result.control = session.task().control;
    if (options.proposer == Proposer::edit || options.proposer == Proposer::scripted) {
        auto editing = edit_kernel(session, options, side);
        result.usage = co_await std::move(editing);
    } else {
        auto searching = search_moves(session, options, side, std::move(out_of_time), result);
        co_await std::move(searching);
    }
    auto flags = time_flags(session, result);
    co_await std::move(flags);
    auto deciding = decide(session, options, result);
    co_await std::move(deciding);
    count_proposers(session, result);
    co_return result;
}

}  // namespace skein::harnesses
