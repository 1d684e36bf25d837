// One agent with a task and its toolsets: `skein run "PROMPT"`, or a file without a kernel_opt
// block.

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "agent/agent.h"
#include "agent/store/reader.h"
#include "harnesses/harness.h"
#include "harnesses/interrupt.h"
#include "tools/builtin.h"
#include "tools/profiler/kernel_profile.h"
#include "tools/registry.h"
#include "tools/workspace.h"

namespace skein::harnesses {
namespace {

void add_toolset(const RunContext& context, const ToolsetSettings& toolset,
                 const tools::Workspace& workspace, tools::Registry& registry) {
    if (toolset.type == "files") {
        registry.add(tools::make_read_file_tool(workspace));
        registry.add(tools::make_write_file_tool(workspace));
        registry.add(tools::make_edit_file_tool(workspace));
        registry.add(tools::make_list_dir_tool(workspace));
        registry.add(tools::make_find_files_tool(workspace));
        registry.add(tools::make_grep_tool(workspace));
    } else if (toolset.type == "shell") {
        tools::ShellOptions options;
        options.timeout = toolset.timeout;
        options.max_timeout = toolset.max_timeout;
        options.limits.memory_bytes = context.config.sandbox.memory_bytes;
        options.limits.pids = context.config.sandbox.pids;
        registry.add(tools::make_bash_tool(context.sandbox, workspace, std::move(options)));
    } else {
        tools::KernelProfileOptions options;
        options.scratch = context.run.path() / "scratch";
        std::filesystem::create_directories(options.scratch);
        registry.add(tools::make_kernel_profile_tool(context.sandbox, workspace, options));
    }
}

agent::AgentConfig config_of(const AgentSettings& settings, const ModelSettings& model,
                             const std::string& name) {
    agent::AgentConfig config;
    config.name = name;
    config.instruction = settings.instruction;
    config.limits.turns = settings.limits.turns;
    config.limits.tool_calls = settings.limits.tool_calls;
    config.limits.tokens = settings.limits.tokens;
    config.limits.output_tokens = settings.limits.output_tokens;
    config.limits.reply_tokens = settings.limits.reply_tokens;
    config.limits.tool_output_tokens = settings.limits.tool_output_tokens;
    config.limits.wall_time = settings.limits.time;
    config.sampling.temperature = static_cast<float>(model.temperature);
    config.sampling.top_k = model.top_k;
    config.sampling.top_p = static_cast<float>(model.top_p);
    config.sampling.min_p = static_cast<float>(model.min_p);
    config.sampling.seed = model.seed;
    config.thinking = thinking_of(model);
    return config;
}

ExitCode exit_code_of(agent::ExitStatus status) {
    using agent::ExitStatus;
    switch (status) {
        case ExitStatus::finished:
            return ExitCode::done;
        case ExitStatus::turn_limit:
        case ExitStatus::tool_call_limit:
        case ExitStatus::token_limit:
        case ExitStatus::output_token_limit:
        case ExitStatus::context_full:
            return ExitCode::budget_used;
        case ExitStatus::time_limit:
            return ExitCode::time_limit;
        case ExitStatus::stuck:
            return ExitCode::stuck;
        case ExitStatus::cancelled:
            return ExitCode::interrupted;
        case ExitStatus::engine_error:
            return ExitCode::engine_error;
        case ExitStatus::tool_infrastructure_error:
            return ExitCode::infrastructure;
        case ExitStatus::internal_error:
            return ExitCode::internal_error;
    }
    return ExitCode::internal_error;
}

/// What the store holds of an unfinished trajectory, or nothing when there is none.
std::optional<agent::ResumePoint> resume_point(const std::filesystem::path& directory) {
    const agent::store::Reader reader(directory);
    for (const auto& trajectory : reader.trajectories()) {
        agent::ResumePoint point;
        point.trajectory = trajectory.record.uid;
        for (agent::store::StoredStep& step : reader.steps(trajectory.record.uid)) {
            for (const agent::store::StoredToolCall& call : step.calls) {
                point.calls.push_back(call.as_record(step.record.uid));
            }
            point.steps.push_back(std::move(step.record));
        }
        point.tail = reader.tail(trajectory.record.uid);
        return point;
    }
    return std::nullopt;
}

}  // namespace

RunOutcome run_agent_harness(RunContext& context) {
    const std::string name = context.config.agents.empty() || context.config.agents.contains("root")
                                 ? "root"
                                 : context.config.agents.begin()->first;
    const AgentSettings& settings = agent_settings(context.config, name);
    const ModelSettings& model = model_settings(context.config, settings);
    const std::filesystem::path root = context.config.workspace.empty()
                                           ? context.run.path() / "workspace"
                                           : context.config.workspace;
    std::filesystem::create_directories(root);
    const tools::Workspace workspace(root);
    tools::Registry registry;
    for (const ToolsetSettings& toolset : settings.toolsets) {
        add_toolset(context, toolset, workspace, registry);
    }
    auto language_model = load_model(model, context.progress);
    agent::Agent agent(config_of(settings, model, name), *language_model, registry,
                       context.run.writer(),
                       [&](const agent::AgentEvent& event) { context.progress.agent(event); });
    std::optional<agent::ResumePoint> point;
    if (context.resumed) point = resume_point(context.run.path());

    agent::RunResult result;
    auto work = [&]() -> boost::asio::awaitable<void> {
        auto running = point ? agent.resume(std::move(*point)) : agent.run(context.config.task);
        result = co_await std::move(running);
    };
    run_interruptible(work());

    RunOutcome outcome;
    outcome.code = exit_code_of(result.exit_status);
    outcome.status = result.exit_status == agent::ExitStatus::finished ? "finished" : "stopped";
    outcome.result = {{"exit_status", agent::to_string(result.exit_status)},
                      {"final_message", model::to_valid_utf8(result.final_message)},
                      {"error", model::to_valid_utf8(result.error)},
                      {"tokens", boost::json::object{{"prompt", result.usage.prompt_tokens},
                                                     {"sampled", result.usage.sampled_tokens},
                                                     {"reused", result.usage.reused_tokens}}}};
    outcome.summary = model::to_valid_utf8(result.final_message) + "\n";
    if (result.exit_status != agent::ExitStatus::finished) {
        outcome.summary += fmt::format("stopped: {}{}{}\n", agent::to_string(result.exit_status),
                                       result.error.empty() ? "" : ": ", result.error);
    }
    return outcome;
}

}  // namespace skein::harnesses
