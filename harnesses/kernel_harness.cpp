// Kernel optimisation as a harness: configuration in, report and winning kernels out.

#include <fmt/format.h>

#include <sys/random.h>

#include <boost/json/serialize.hpp>

#include "agent/llm/scripted_model.h"
#include "harnesses/harness.h"
#include "harnesses/interrupt.h"
#include "harnesses/kernel_opt/kernel_run.h"
#include "harnesses/kernel_opt/report.h"
#include "harnesses/kernel_opt/task_check.h"

namespace skein::harnesses {
namespace {

std::vector<KernelTask> chosen_tasks(const KernelOptSettings& settings) {
    if (settings.tasks.empty()) return load_tasks(tasks_root());
    std::vector<KernelTask> tasks;
    for (const std::string& id : settings.tasks) tasks.push_back(find_task(id));
    return tasks;
}

/// Seeds of all inputs. It is new in every process and reaches neither model nor candidates.
std::uint64_t fresh_secret() {
    std::uint64_t secret = 0;
    if (getrandom(&secret, sizeof secret, 0) != sizeof secret) {
        throw std::runtime_error("the kernel gives no random bytes");
    }
    return secret;
}

KernelRunOptions options_of(const RunContext& context, const AgentSettings& agent,
                            const ModelSettings& model) {
    const KernelOptSettings& settings = *context.config.kernel_opt;
    KernelRunOptions options;
    options.tasks = chosen_tasks(settings);
    options.time = settings.time;
    options.run_directory = context.run.path();
    const auto proposer = parse_proposer(settings.proposer);
    if (!proposer) throw UsageError("unknown proposer '" + settings.proposer + "'");
    OptimiseOptions& optimise = options.optimise;
    optimise.proposer = *proposer;
    optimise.evaluations = settings.evaluations;
    optimise.model_share = settings.model_share;
    optimise.random_control = settings.random_control;
    optimise.finalists = settings.finalists;
    optimise.seed = settings.seed;
    optimise.limits.turns = agent.limits.turns;
    optimise.limits.tool_calls = agent.limits.tool_calls;
    optimise.limits.tokens = agent.limits.tokens;
    optimise.limits.output_tokens = agent.limits.output_tokens;
    optimise.limits.reply_tokens = agent.limits.reply_tokens;
    optimise.limits.tool_output_tokens = agent.limits.tool_output_tokens;
    optimise.limits.wall_time = agent.limits.time;
    optimise.sampling.temperature = static_cast<float>(model.temperature);
    optimise.sampling.top_k = model.top_k;
    optimise.sampling.top_p = static_cast<float>(model.top_p);
    optimise.sampling.min_p = static_cast<float>(model.min_p);
    optimise.sampling.seed = model.seed;
    optimise.thinking = thinking_of(model);
    options.grader.scratch = context.run.path() / "scratch";
    options.grader.secret = fresh_secret();
    options.grader.pairs = settings.pairs;
    options.grader.final_pairs = settings.final_pairs;
    return options;
}

std::string file_comment(const TaskResult& r) {
    std::string flags;
    for (const std::string& flag : r.winner_flags) flags += " " + flag;
    return fmt::format("// {}: {:.2f} x the anchor (95 % {:.2f} to {:.2f}), proposed by {}.{}\n",
                       r.id, r.winner.speedup, r.winner.speedup_low, r.winner.speedup_high,
                       r.winner_proposer, flags.empty() ? "" : " Flags:" + flags);
}

}  // namespace

RunOutcome run_kernel_harness(RunContext& context) {
    const KernelOptSettings& settings = *context.config.kernel_opt;
    const AgentSettings& agent = agent_settings(context.config, "kernel");
    const ModelSettings& model = model_settings(context.config, agent);
    KernelRunOptions options = options_of(context, agent, model);

    std::unique_ptr<agent::LanguageModel> language_model;
    if (options.optimise.proposer == Proposer::moves ||
        options.optimise.proposer == Proposer::edit) {
        language_model = load_model(model, context.progress);
    } else if (options.optimise.proposer == Proposer::scripted) {
        std::vector<agent::ScriptedReply> replies;
        for (const std::string& text : settings.script) replies.push_back({.text = text});
        language_model = std::make_unique<agent::ScriptedModel>(agent::make_byte_tokenizer(),
                                                                std::move(replies));
    }
    if (language_model) {
        options.model = [&](const KernelTask&) { return language_model.get(); };
    }
    KernelRunRecord record;
    if (context.resumed) {
        record = KernelRunRecord::read(agent::store::Reader(context.run.path()));
    }
    std::filesystem::create_directories(options.grader.scratch);

    KernelRunResult result;
    auto work = [&]() -> boost::asio::awaitable<void> {
        auto running = run_kernel_tasks(
            std::move(options), context.run.writer(), std::move(record), context.sandbox,
            [&](const agent::AgentEvent& event) {
                if (settings.proposer == "edit" || settings.proposer == "scripted") {
                    context.progress.agent(event);
                }
            },
            [&](const KernelProgress& progress) { context.progress.kernel(progress); });
        result = co_await std::move(running);
    };
    run_interruptible(work());

    RunOutcome outcome;
    outcome.result = to_json(result);
    for (const TaskResult& task : result.tasks) {
        context.run.write_file("winners/" + task.id + ".cc",
                               file_comment(task) + task.winner_source);
    }
    context.run.write_file(
        "report.html",
        report_html(result, {"Run " + context.run.name() + ", proposer " + settings.proposer +
                                 (language_model ? ", model " + language_model->description() : ""),
                             fmt::format("{} evaluations a task and arm, seed {}",
                                         settings.evaluations, settings.seed)}));
    outcome.result["report"] = (context.run.path() / "report.html").string();
    outcome.summary =
        table_text(result) + fmt::format("report {}\nkernels {}\n",
                                         (context.run.path() / "report.html").string(),
                                         (context.run.path() / "winners").string());
    std::error_code ignored;
    std::filesystem::remove_all(context.run.path() / "scratch", ignored);
    return outcome;
}

}  // namespace skein::harnesses
