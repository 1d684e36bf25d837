#include "harnesses/harness.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "agent/llm/local_model.h"
#include "agent/store/reader.h"
#include "harnesses/interrupt.h"
#include "harnesses/paths.h"
#include "model/engine.h"

namespace skein::harnesses {
namespace {

namespace fs = std::filesystem;

sandbox::Level level_of(const std::string& name) {
    return name == "landlock" ? sandbox::Level::landlock : sandbox::Level::full;
}

/// Isolation is checked before anything is paid for: a run must not find out at its first command.
void require_isolation(sandbox::Sandbox& sandbox, const HarnessConfig& config) {
    const sandbox::ProbeReport& probe = sandbox.probe();
    if (probe.level >= level_of(config.sandbox.require)) return;
    std::string message =
        fmt::format("this machine isolates commands at level '{}', '{}' is required",
                    sandbox::to_string(probe.level), config.sandbox.require);
    for (const sandbox::ProbeLine& line : probe.lines) {
        if (!line.ok)
            message += fmt::format("\n  {}: {} ({})", line.layer, line.detail, line.remedy);
    }
    throw sandbox::Error(message);
}

ExitCode conduct(const CliContext& cli, const HarnessConfig& config, RunDirectory& run,
                 bool resumed) {
    ProgressView progress(cli.json);
    progress.say("run " + run.path().string());
    auto sandbox = sandbox::make_linux_sandbox();
    RunContext context{cli, config, run, progress, *sandbox, resumed};
    RunOutcome outcome;
    try {
        require_isolation(*sandbox, config);
        outcome = config.kernel_opt ? run_kernel_harness(context) : run_agent_harness(context);
    } catch (const Interrupted& interrupted) {
        run.writer().finish_run("interrupted", "{}");
        progress.say(fmt::format("{}; everything so far is stored. `skein resume {}` continues it",
                                 interrupted.what(), run.name()));
        if (cli.json) {
            print_json({{"status", "interrupted"},
                        {"run", run.path().string()},
                        {"exit_code", 128 + interrupted.signal_number}});
        }
        return static_cast<ExitCode>(128 + interrupted.signal_number);
    } catch (const agent::store::Error&) {
        throw;  // the store itself failed: nothing more can be written to it
    } catch (const std::exception& error) {
        run.writer().record_event(std::nullopt, "error",
                                  boost::json::serialize(boost::json::object{
                                      {"message", model::to_valid_utf8(error.what())}}));
        run.writer().finish_run("error", "{}");
        throw;
    }
    boost::json::object last{{"status", outcome.status}, {"run", run.path().string()}};
    for (const auto& member : outcome.result) last[member.key()] = member.value();
    last["exit_code"] = static_cast<int>(outcome.code);
    run.writer().finish_run(outcome.status, boost::json::serialize(last));
    if (cli.json)
        print_json(last);
    else
        fmt::print("{}", outcome.summary);
    return outcome.code;
}

}  // namespace

ExitCode start_run(const CliContext& cli, HarnessConfig config) {
    const fs::path directory =
        config.run_dir.empty() ? new_run_directory(cli.run_root) : config.run_dir;
    config.run_dir = fs::absolute(directory);
    agent::store::RunRecord record{agent::Uid::make(), config.kernel_opt ? "kernel_opt" : "agent",
                                   cli.command_line, show_config(config), SKEIN_VERSION};
    RunDirectory run = RunDirectory::create(config.run_dir, std::move(record));
    return conduct(cli, config, run, false);
}

ExitCode resume_run(const CliContext& cli, const fs::path& directory) {
    const agent::store::StoredRun stored = agent::store::Reader(directory).run();
    if (stored.status == "finished" || stored.status == "failed") {
        throw UsageError("the run " + directory.string() + " is over (" + stored.status +
                         "); `skein log show` shows it");
    }
    RunDirectory run = RunDirectory::open(fs::absolute(directory));
    HarnessConfig config =
        parse_config(stored.config, (directory / "skein.db").string(), directory);
    config.run_dir = run.path();
    run.writer().record_event(std::nullopt, "resumed",
                              boost::json::serialize(boost::json::object{
                                  {"command", model::to_valid_utf8(cli.command_line)}}));
    return conduct(cli, config, run, true);
}

fs::path model_path(const ModelSettings& settings) {
    if (settings.path != "default") return settings.path;
    const fs::path path = default_model_path();
    if (!fs::exists(path)) {
        throw model::Error("the default model is not at " + path.string() +
                           "; `skein model fetch` gets it, --model PATH names another");
    }
    return path;
}

model::AttentionMode attention_of(std::string_view name) {
    using Mode = model::AttentionMode;
    for (const Mode mode : {Mode::model, Mode::dense, Mode::local, Mode::retrofit})
        if (name == model::attention_mode_name(mode)) return mode;
    throw model::Error(
        fmt::format("attention '{}' is not known; expected model, dense, local or retrofit", name));
}

model::KvType kv_type_of(std::string_view name) {
    using Type = model::KvType;
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::int16, Type::int8})
        if (name == model::kv_type_name(type)) return type;
    throw model::Error(
        fmt::format("KV type '{}' is not known; expected f32, f16, bf16, int16 or int8", name));
}

std::unique_ptr<agent::LanguageModel> load_model(const ModelSettings& settings,
                                                 ProgressView& progress) {
    model::EngineOptions options;
    options.threads = settings.threads;
    options.attention = attention_of(settings.attention);
    options.kv = kv_type_of(settings.kv);
    const fs::path path = model_path(settings);
    auto engine = model::Engine::load(path, options);
    progress.say(fmt::format("model {}, {} threads, {}", path.string(), engine->threads(),
                             engine->numerics_version()));
    return std::make_unique<agent::LocalModel>(
        std::move(engine),
        agent::LocalModelOptions{
            .max_context = settings.max_context,
            .chat_format = settings.chat_format == "auto" ? "" : settings.chat_format});
}

agent::Thinking thinking_of(const ModelSettings& settings) {
    return {agent::parse_thinking_mode(settings.thinking).value_or(agent::ThinkingMode::adaptive),
            settings.thinking_tokens};
}

const AgentSettings& agent_settings(const HarnessConfig& config, const std::string& name) {
    static const AgentSettings kDefault;
    if (const auto found = config.agents.find(name); found != config.agents.end()) {
        return found->second;
    }
    return config.agents.size() == 1 ? config.agents.begin()->second : kDefault;
}

const ModelSettings& model_settings(const HarnessConfig& config, const AgentSettings& agent) {
    static const ModelSettings kDefault;
    if (const auto found = config.models.find(agent.model); found != config.models.end()) {
        return found->second;
    }
    return config.models.size() == 1 ? config.models.begin()->second : kDefault;
}

}  // namespace skein::harnesses
