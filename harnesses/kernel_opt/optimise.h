#pragma once
// One kernel task from anchor to winner: who proposes when, the control arm, the finalists.
//
// `moves`: rounds of candidates; the model chooses a fixed share of them among legal moves, the
// search proposes the rest, and a uniform control arm gets exactly as many evaluations in the same
// rounds, so that drift of the machine hits both arms alike.  `search` and `random` are the same
// without a model; `edit` and `scripted` let a model edit the kernel's source through the file
// tools.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agent/agent.h"
#include "agent/llm/language_model.h"
#include "harnesses/kernel_opt/kernel_session.h"
#include "sandbox/sandbox.h"

namespace skein::harnesses {

enum class Proposer { moves, search, random, edit, scripted };
std::string_view to_string(Proposer proposer);
std::optional<Proposer> parse_proposer(std::string_view name);

struct OptimiseOptions {
    Proposer proposer = Proposer::moves;
    int evaluations = 24;       ///< of the main arm, and of the control arm
    double model_share = 0.25;  ///< of the main arm's evaluations, for `moves`
    bool random_control = true;
    int round = 4;  ///< candidates of an arm between two looks at the results
    int finalists = 3;
    std::size_t moves_shown = 24;
    std::uint64_t seed = 1;
    SearchOptions search;
    agent::RunLimits limits;  ///< of the model's agent
    model::SamplingParams sampling;
    agent::Thinking thinking;
    std::filesystem::path workspace;  ///< for `edit` and `scripted`: made, filled from start/
};

/// What a task ended with; the fields of the report.
struct TaskResult {
    std::string id;
    bool control = false;
    Verdict winner;  ///< final verdict of the winner, or of the anchor when nothing beat it
    std::string winner_source, winner_description, winner_proposer;
    std::vector<std::string> winner_flags;
    bool improved = false;                 ///< its interval lies above 1 and above the noise
    double flags_only = 1;                 ///< best speedup of the anchor's source with other flags
    std::optional<double> random_control;  ///< best of the control arm, re-timed like the finalists
    double noise_low = 1, noise_high = 1;  ///< the anchor against itself
    int evaluations = 0, control_evaluations = 0;
    int by_model = 0, by_search = 0, by_random = 0;
    bool stopped_by_time = false;
    agent::Usage usage;
    std::vector<Evaluation> history;
};

/// What the model side needs; `model` may be null for `search` and `random`.
struct ModelSide {
    agent::LanguageModel* model = nullptr;
    agent::Recorder* recorder = nullptr;
    agent::EventSink events;
    sandbox::Sandbox* sandbox = nullptr;  ///< for shell and profiler tools of `edit`
};

/// Runs the task. `out_of_time` is asked between rounds.
/// Throws: std::runtime_error when grading or the model's engine fails.
boost::asio::awaitable<TaskResult> optimise(KernelSession& session, OptimiseOptions options,
                                            ModelSide side, std::function<bool()> out_of_time);

}  // namespace skein::harnesses
