#pragma once
// Puts a run together from its configuration: model, sandbox, tools, agent, store.

#include <memory>
#include <string>

#include "agent/chat/thinking.h"
#include "agent/llm/language_model.h"
#include "harnesses/cli.h"
#include "harnesses/config/config.h"
#include "harnesses/progress.h"
#include "harnesses/run_directory.h"
#include "model/engine.h"
#include "sandbox/sandbox.h"

namespace skein::harnesses {

/// Everything a harness works with while its run lasts.
struct RunContext {
    const CliContext& cli;
    const HarnessConfig& config;
    RunDirectory& run;
    ProgressView& progress;
    sandbox::Sandbox& sandbox;
    bool resumed = false;
};

/// What a harness ends with; `result` is stored and printed last.
struct RunOutcome {
    ExitCode code = ExitCode::done;
    std::string status = "finished";
    boost::json::object result;
    std::string summary;  ///< for people, on stdout
};

/// Starts a new run of `config` (directory from config.run_dir or below the runs folder).
ExitCode start_run(const CliContext& cli, HarnessConfig config);
/// Continues a stored run that did not finish.
ExitCode resume_run(const CliContext& cli, const std::filesystem::path& directory);

/// The harnesses: kernel optimisation, and one agent with a task.
RunOutcome run_kernel_harness(RunContext& context);
RunOutcome run_agent_harness(RunContext& context);

/// The file a model setting means. Throws: UsageError when the default model is not there.
std::filesystem::path model_path(const ModelSettings& settings);
/// By the names of the configuration. Throws: model::Error naming the known ones.
model::AttentionMode attention_of(std::string_view name);
model::KvType kv_type_of(std::string_view name);
/// Loads the model of these settings. Throws: model::Error.
std::unique_ptr<agent::LanguageModel> load_model(const ModelSettings& settings,
                                                 ProgressView& progress);
/// The model named by the agent called `name`, or by the only agent there is.
const AgentSettings& agent_settings(const HarnessConfig& config, const std::string& name);
const ModelSettings& model_settings(const HarnessConfig& config, const AgentSettings& agent);
agent::Thinking thinking_of(const ModelSettings& settings);

}  // namespace skein::harnesses
