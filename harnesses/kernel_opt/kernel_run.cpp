#include "harnesses/kernel_opt/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

namespace skein::harnesses {
namespace {

using boost::asio::awaitable;
using Clock = std::chrono::steady_clock;
namespace store = agent::store;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The time a task may take: an equal share of what is left of the run's.
class TaskClock {
  public:
    TaskClock(std::chrono::milliseconds total, std::size_t n_tasks)
        : total_(std::chrono::duration<double>(total).count()), tasks_left_(n_tasks) {}
    void begin_task() {
        task_began_ = Clock::now();
        const double left = total_ - seconds_since(began_);
        share_ = tasks_left_ == 0 ? left : left / static_cast<double>(tasks_left_);
        if (tasks_left_ > 0) --tasks_left_;
    }
    /// Half a minute's worth is kept back for the flags and the finalists.
    bool out() const {
        constexpr double kForFinals = 0.8;
        return total_ > 0 && seconds_since(task_began_) > share_ * kForFinals;
    }
    double task_seconds() const { return seconds_since(task_began_); }

  private:
    double total_;
    std::size_t tasks_left_;
    Clock::time_point began_ = Clock::now(), task_began_ = began_;
    double share_ = 0;
};

agent::Uid episode_of(const KernelRunRecord& record, const KernelTask& task, Proposer proposer,
                      store::Writer& writer) {
    for (const auto& episode : record.episodes) {
        if (episode.task_id == task.id) return episode.uid;
    }
    const agent::Uid uid = agent::Uid::make();
    writer.begin_episode({uid, task.id, fmt::format("{}@{}", task.id, task.version),
                          std::string(to_string(proposer)), 0});
    return uid;
}

/// After how many evaluations of the main arm a recorded task stopped for lack of time, or -1.
int recorded_stop(const KernelRunRecord& record, const std::string& task) {
    for (const auto& event : record.events) {
        if (event.kind != "stopped_by_time") continue;
        const boost::json::value json = boost::json::parse(event.json);
        if (json.at("task").as_string() == task) return json.at("evaluations").to_number<int>();
    }
    return -1;
}

std::string short_form(const Evaluation& e) {
    return e.verdict.timed() ? fmt::format("{} {:.2f} x", e.proposer, e.verdict.speedup)
                             : fmt::format("{} {}", e.proposer, to_string(e.verdict.status));
}

/// One task with its replay parts, when the record has a trajectory for it.
struct TaskModel {
    std::unique_ptr<store::ReplayState> state;
    std::unique_ptr<store::ReplayModel> model;
    std::unique_ptr<store::ReplayRecorder> recorder;
    ModelSide side;
};

TaskModel model_side(const KernelRunOptions& options, const KernelRunRecord& record,
                     const KernelTask& task, store::Writer& writer, sandbox::Sandbox& sandbox,
                     const agent::EventSink& events) {
    TaskModel parts;
    parts.side.sandbox = &sandbox;
    parts.side.events = events;
    parts.side.recorder = &writer;
    parts.side.model = options.model ? options.model(task) : nullptr;
    if (parts.side.model == nullptr) return parts;
    for (const auto& [trajectory, steps] : record.trajectories) {
        if (trajectory.record.task != task.id) continue;
        parts.state = std::make_unique<store::ReplayState>(store::ReplayState::for_resume(steps));
        parts.model = std::make_unique<store::ReplayModel>(
            *parts.state, parts.side.model->tokenizer(), trajectory.record, parts.side.model);
        parts.recorder = std::make_unique<store::ReplayRecorder>(*parts.state, trajectory, &writer);
        parts.side.model = parts.model.get();
        parts.side.recorder = parts.recorder.get();
        break;
    }
    return parts;
}

struct Context {
    const KernelRunOptions& options;
    store::Writer& writer;
    const KernelRunRecord& record;
    sandbox::Sandbox& sandbox;
    const agent::EventSink& events;
    const std::function<void(const KernelProgress&)>& progress;
    Journal& journal;
    TaskClock& clock;
};

/// Waits for nothing and costs nothing when everything it asks for is in the record.
awaitable<TaskResult> run_task(const Context& context, const KernelTask& task, std::size_t index) {
    const KernelRunOptions& options = context.options;
    context.clock.begin_task();
    const KernelGenerator* generator = find_generator(task.id);
    const agent::Uid episode =
        episode_of(context.record, task, options.optimise.proposer, context.writer);
    context.writer.record_task(
        task.id, task.version,
        boost::json::serialize(boost::json::object{{"id", task.id},
                                                   {"version", task.version},
                                                   {"title", task.title},
                                                   {"anchor", task.anchor_sha256}}));

    KernelProgress shown;
    shown.task = task.id;
    shown.task_index = index;
    shown.n_tasks = options.tasks.size();
    shown.of = options.optimise.evaluations;
    shown.phase = "prepare";
    if (context.progress) context.progress(shown);
    const auto on_evaluation = [&](const KernelSession& session, const Evaluation& e) {
        shown.phase = e.arm == Arm::final ? "final" : e.arm == Arm::flags ? "flags" : "search";
        shown.evaluations = session.count(Arm::main);
        shown.last = short_form(e);
        const Evaluation* best = session.best(Arm::main);
        shown.best = best == nullptr ? 0 : best->verdict.speedup;
        const double spent = context.clock.task_seconds();
        shown.seconds_left = shown.evaluations == 0
                                 ? -1
                                 : spent / shown.evaluations * (shown.of - shown.evaluations) +
                                       spent / shown.evaluations * shown.of *
                                           static_cast<double>(shown.n_tasks - index - 1);
        if (context.progress) context.progress(shown);
    };
    const auto factory = [&]() { return make_grader(task, context.sandbox, options.grader); };
    KernelSession session(task, generator, factory, context.journal, episode, on_evaluation);

    TaskModel parts =
        model_side(options, context.record, task, context.writer, context.sandbox, context.events);
    const int stop_at = recorded_stop(context.record, task.id);
    const auto out_of_time = [&]() {
        const int done = session.count(Arm::main);
        if (stop_at >= 0) return done >= stop_at;
        if (context.journal.has_recorded(task.id) || !context.clock.out()) return false;
        context.writer.record_event(
            std::nullopt, "stopped_by_time",
            boost::json::serialize(boost::json::object{{"task", task.id}, {"evaluations", done}}));
        return true;
    };
    OptimiseOptions mine = options.optimise;
    mine.seed = options.optimise.seed * 1000003 + index;
    mine.workspace = options.run_directory / "workspaces" / task.id;
    auto running = optimise(session, mine, parts.side, out_of_time);
    TaskResult result = co_await std::move(running);
    if (parts.state && parts.state->difference()) {
        throw store::Divergence("the run cannot be continued, its replay differs: " + task.id +
                                ", " + *parts.state->difference());
    }
    context.writer.finish_episode(episode, to_string(result.winner.status),
                                  result.stopped_by_time ? "time" : "evaluations");
    context.writer.flush();
    co_return result;
}

boost::json::object task_json(const TaskResult& r) {
    boost::json::object json{
        {"id", r.id},
        {"verdict", to_string(r.winner.status)},
        {"improved", r.improved},
        {"control", r.control},
        {"speedup", r.winner.speedup},
        {"speedup_low", r.winner.speedup_low},
        {"speedup_high", r.winner.speedup_high},
        {"vs_o3_native", r.winner.speedup},
        {"flags_only", r.flags_only},
        {"limit_fraction", r.winner.limit_fraction},
        {"evaluations", r.evaluations},
        {"proposed",
         boost::json::object{
             {"model", r.by_model}, {"search", r.by_search}, {"random", r.by_random}}},
        {"random_control", nullptr},
        {"control_evaluations", r.control_evaluations},
        {"winner", boost::json::object{{"proposer", r.winner_proposer},
                                       {"configuration", r.winner_description}}},
        {"stopped_by_time", r.stopped_by_time}};
    if (r.random_control) json["random_control"] = *r.random_control;
    return json;
}

}  // namespace

KernelRunRecord KernelRunRecord::read(const store::Reader& reader) {
    KernelRunRecord record;
    record.events = reader.events();
    record.episodes = reader.episodes();
    for (store::StoredTrajectory& trajectory : reader.trajectories()) {
        auto steps = reader.steps(trajectory.record.uid);
        record.trajectories.emplace_back(std::move(trajectory), std::move(steps));
    }
    return record;
}

awaitable<KernelRunResult> run_kernel_tasks(KernelRunOptions options, store::Writer& writer,
                                            KernelRunRecord record, sandbox::Sandbox& sandbox,
                                            agent::EventSink events,
                                            std::function<void(const KernelProgress&)> progress) {
    Journal journal(writer, record.events);
    TaskClock clock(options.time, options.tasks.size());
    const Context context{options, writer, record, sandbox, events, progress, journal, clock};
    KernelRunResult result;
    double log_sum = 0;
    int counted = 0;
    for (std::size_t i = 0; i < options.tasks.size(); ++i) {
        auto running = run_task(context, options.tasks[i], i);
        TaskResult task = co_await std::move(running);
        result.usage.prompt_tokens += task.usage.prompt_tokens;
        result.usage.sampled_tokens += task.usage.sampled_tokens;
        result.usage.reused_tokens += task.usage.reused_tokens;
        result.usage.evaluated_tokens += task.usage.evaluated_tokens;
        result.usage.turns += task.usage.turns;
        result.usage.tool_calls += task.usage.tool_calls;
        if (!task.control) {
            log_sum += task.improved ? std::log(task.winner.speedup) : 0;
            ++counted;
        }
        result.tasks.push_back(std::move(task));
    }
    result.geomean_speedup = counted == 0 ? 0 : std::exp(log_sum / counted);
    co_return result;
}

boost::json::object to_json(const KernelRunResult& result) {
    boost::json::array tasks;
    for (const TaskResult& task : result.tasks) tasks.push_back(task_json(task));
    return {{"tasks", tasks},
            {"geomean_speedup", result.geomean_speedup},
            {"tokens", boost::json::object{{"prompt", result.usage.prompt_tokens},
                                           {"sampled", result.usage.sampled_tokens},
                                           {"reused", result.usage.reused_tokens}}}};
}

}  // namespace skein::harnesses
