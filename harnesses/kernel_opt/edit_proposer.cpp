#include "harnesses/kernel_opt/edit_proposer.h"

#include <fmt/format.h>

#include <stdexcept>

#include "harnesses/kernel_opt/kernel_tools.h"
#include "tools/builtin.h"
#include "tools/registry.h"

namespace skein::harnesses {
namespace {

namespace fs = std::filesystem;

void fill_workspace(const fs::path& workspace, const KernelTask& task) {
    if (fs::exists(workspace)) return;  // a resumed run goes on with its files
    std::error_code error;
    fs::create_directories(workspace, error);
    if (!error) {
        fs::copy(task.directory / "start", workspace, fs::copy_options::recursive, error);
    }
    if (error) {
        throw std::runtime_error("cannot fill the workspace " + workspace.string() + ": " +
                                 error.message());
    }
}

std::string task_text(const KernelTask& task, const OptimiseOptions& options) {
    std::string flags;
    for (const std::string& flag : task.flags) flags += flag + " ";
    return fmt::format(
        "{}\n\nThe workspace holds the starting kernel. Edit it, call kernel_try with its path to "
        "build, check and time it (compiled with {}), and repeat. You have {} tries. Call "
        "kernel_submit when you are done.\n",
        task.prompt, flags, options.evaluations);
}

}  // namespace

boost::asio::awaitable<agent::Usage> edit_kernel(KernelSession& session, OptimiseOptions options,
                                                 ModelSide side) {
    fill_workspace(options.workspace, session.task());
    const tools::Workspace workspace(options.workspace);
    bool submitted = false;
    tools::Registry registry;
    registry.add(tools::make_read_file_tool(workspace));
    registry.add(tools::make_write_file_tool(workspace));
    registry.add(tools::make_edit_file_tool(workspace));
    registry.add(tools::make_list_dir_tool(workspace));
    registry.add(make_kernel_try_file_tool(
        session, workspace, std::string(to_string(options.proposer)), options.evaluations));
    registry.add(make_kernel_submit_tool(session, submitted));
    agent::AgentConfig config;
    config.name = "kernel_editor";
    config.instruction = "You are an expert in fast C++ kernels. Work through the tools.";
    config.limits = options.limits;
    config.sampling = options.sampling;
    config.thinking = options.thinking;
    config.task_id = session.task().id;
    agent::Agent agent(std::move(config), *side.model, registry, *side.recorder, side.events);
    agent.say(task_text(session.task(), options));
    while (true) {
        auto pending = agent.step();
        const agent::Agent::StepResult step = co_await std::move(pending);
        session.rethrow_failure();
        if (step.ended == agent::ExitStatus::engine_error) {
            throw std::runtime_error("the model's engine failed while editing " +
                                     session.task().id);
        }
        if (step.ended) {
            const agent::RunResult result = agent.finish(*step.ended, step.reply.text);
            co_return result.usage;
        }
        if (submitted) {
            const agent::RunResult result = agent.finish(agent::ExitStatus::finished, "submitted");
            co_return result.usage;
        }
    }
}

}  // namespace skein::harnesses
