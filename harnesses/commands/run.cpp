// skein run FILE.yaml | PROMPT, and skein resume RUN.

#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "harnesses/cli.h"
#include "harnesses/harness.h"
#include "harnesses/paths.h"

namespace skein::harnesses {
namespace {

struct RunFlags {
    std::string what, model, thinking, attention;
    std::filesystem::path run_dir, workspace;
    std::vector<std::string> tasks;
    int evaluations = 0, threads = 0;
    std::optional<std::uint64_t> seed;
    double time_seconds = 0;
};

bool names_a_file(const std::string& what) {
    return what.ends_with(".yaml") || what.ends_with(".yml");
}

/// A prompt alone: one agent with files and a shell in the given or a new workspace.
HarnessConfig prompt_config(std::string prompt) {
    HarnessConfig config;
    config.models["main"] = {};
    AgentSettings agent;
    agent.instruction = "You are a careful assistant. Use the tools to do the task.";
    agent.toolsets = {{.type = "files"}, {.type = "shell"}};
    config.agents["root"] = agent;
    config.task = std::move(prompt);
    return config;
}

void apply(const RunFlags& flags, HarnessConfig& config) {
    if (config.models.empty()) config.models["main"] = {};
    for (auto& [name, model] : config.models) {
        if (!flags.model.empty()) model.path = std::filesystem::absolute(flags.model);
        if (flags.threads > 0) model.threads = flags.threads;
        if (flags.seed) model.seed = *flags.seed;
        if (!flags.thinking.empty()) model.thinking = flags.thinking;
        if (!flags.attention.empty()) model.attention = flags.attention;
    }
    if (!flags.run_dir.empty()) config.run_dir = std::filesystem::absolute(flags.run_dir);
    if (!flags.workspace.empty()) config.workspace = std::filesystem::absolute(flags.workspace);
    if (!config.kernel_opt) {
        if (!flags.tasks.empty() || flags.evaluations > 0) {
            throw UsageError("--tasks and --evaluations belong to a kernel_opt configuration");
        }
        return;
    }
    if (!flags.tasks.empty()) config.kernel_opt->tasks = flags.tasks;
    if (flags.evaluations > 0) config.kernel_opt->evaluations = flags.evaluations;
    if (flags.seed) config.kernel_opt->seed = *flags.seed;
    if (flags.time_seconds > 0) {
        config.kernel_opt->time =
            std::chrono::milliseconds(static_cast<std::int64_t>(flags.time_seconds * 1000));
    }
}

ExitCode run(const CliContext& context, const RunFlags& flags) {
    HarnessConfig config;
    if (names_a_file(flags.what)) {
        config = load_config(flags.what);
    } else if (flags.what == "-") {
        config = prompt_config({std::istreambuf_iterator<char>(std::cin), {}});
    } else {
        config = prompt_config(flags.what);
    }
    apply(flags, config);
    if (!config.kernel_opt && config.task.empty()) {
        throw UsageError(
            "there is nothing to do: give a prompt, or a file with `task` or "
            "`kernel_opt`");
    }
    return start_run(context, std::move(config));
}

}  // namespace

void add_run_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("run", "Run a configuration, or one agent on a prompt");
    auto flags = std::make_shared<RunFlags>();
    app->add_option("what", flags->what, "FILE.yaml, a prompt in quotes, or - for standard input")
        ->required();
    app->add_option("--model", flags->model, "Model file for every model of the configuration");
    app->add_option("--threads", flags->threads, "Inference threads");
    app->add_option("--run-dir", flags->run_dir, "Directory of this run (default: a new one)");
    app->add_option("--workspace", flags->workspace, "Directory the agent works in");
    app->add_option("--tasks", flags->tasks, "Kernel tasks, comma separated")->delimiter(',');
    app->add_option("--evaluations", flags->evaluations, "Evaluations a task and arm");
    app->add_option("--seed", flags->seed, "Seed of search and sampling");
    app->add_option("--thinking", flags->thinking, "Whether the model reasons before it answers")
        ->check(CLI::IsMember({"adaptive", "enabled", "disabled"}));
    app->add_option("--attention", flags->attention,
                    "What the model was trained for, or retrofit: a dense model on selected blocks")
        ->check(CLI::IsMember({"model", "dense", "local", "retrofit"}));
    app->add_option("--time", flags->time_seconds, "Time for the whole run, in seconds")
        ->transform(CLI::AsNumberWithUnit(
            std::map<std::string, double>{{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}));
    on_command(*app, context, [&context, flags] { return run(context, *flags); });
}

void add_resume_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("resume", "Continue a run that was interrupted or killed");
    auto name = std::make_shared<std::string>();
    app->add_option("run", *name, "Run: directory, name or unique prefix (default: newest)");
    on_command(*app, context,
               [&context, name] { return resume_run(context, find_run(context.run_root, *name)); });
}

}  // namespace skein::harnesses
