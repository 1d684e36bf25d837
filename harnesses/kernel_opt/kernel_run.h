#pragma once
// A whole kernel-optimisation run: task after task, stored as it goes, resumable, with one result.

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "agent/store/replay.h"
#include "harnesses/kernel_opt/optimise.h"

namespace skein::harnesses {

struct KernelRunOptions {
    std::vector<KernelTask> tasks;
    OptimiseOptions optimise;
    GraderOptions grader;
    std::chrono::milliseconds time{0};  ///< for all tasks together; 0: no limit
    std::filesystem::path run_directory;
    /// Makes the model of a task; null for proposers without one. Called once a task.
    std::function<agent::LanguageModel*(const KernelTask&)> model;
};

/// Live figures for a screen.
struct KernelProgress {
    std::string task, phase;  ///< phase: "prepare", "search", "final"
    std::size_t task_index = 0, n_tasks = 0;
    int evaluations = 0, of = 0;  ///< of the main arm
    std::string last;             ///< the last evaluation in a few words
    double best = 0;              ///< speedup so far
    double seconds_left = -1;     ///< estimate; negative: unknown
};

struct KernelRunResult {
    std::vector<TaskResult> tasks;
    double geomean_speedup = 0;  ///< over the tasks that are no controls; failures count as 1
    agent::Usage usage;
};

/// What a stored run already knows; empty for a new run.
struct KernelRunRecord {
    std::vector<agent::store::StoredEvent> events;
    std::vector<agent::store::StoredEpisode> episodes;
    std::vector<std::pair<agent::store::StoredTrajectory, std::vector<agent::store::StoredStep>>>
        trajectories;
    static KernelRunRecord read(const agent::store::Reader& reader);
};

/// Runs all tasks, or continues them: recorded verdicts and replies are replayed, then it goes on.
/// Throws: store::Divergence when the replayed part differs from the record, std::runtime_error
/// when grading or the engine fails.
boost::asio::awaitable<KernelRunResult> run_kernel_tasks(
    KernelRunOptions options, agent::store::Writer& writer, KernelRunRecord record,
    sandbox::Sandbox& sandbox, agent::EventSink events,
    std::function<void(const KernelProgress&)> progress);

/// The last line of `skein run --json`: `tasks`, `geomean_speedup`, `tokens`.
boost::json::object to_json(const KernelRunResult& result);

}  // namespace skein::harnesses
