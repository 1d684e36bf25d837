#include "harnesses/config/config.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <fstream>
#include <iterator>

#include "harnesses/config/section.h"

namespace skein::harnesses {
namespace {

constexpr std::int64_t kAnyCount = 1'000'000'000;

const Section<ModelSettings>& model_section() {
    using S = ModelSettings;
    static const Section<S> section{
        "models.NAME",
        {field("path", &S::path, path_or({"default"}),
               "GGUF file or safetensors folder; default is the model that skein fetches",
               {"model", "file"}),
         field("threads", &S::threads, integer<int>(0, 1024), "compute threads; 0 takes every core",
               {"n_threads"}),
         field("max_context", &S::max_context, integer<int>(0, kAnyCount),
               "tokens of context; 0 takes what the model was trained for",
               {"n_ctx", "context", "context_length"}),
         field("temperature", &S::temperature, number(0, 100),
               "0 always takes the most likely token", {"temp"}),
         field("top_k", &S::top_k, integer<int>(0, kAnyCount),
               "keeps the k most likely tokens; 0 keeps all"),
         field("top_p", &S::top_p, number(0, 1), "keeps the most likely tokens up to this sum"),
         field("min_p", &S::min_p, number(0, 1),
               "keeps tokens of at least this share of the best one"),
         field("seed", &S::seed,
               integer<std::uint64_t>(0, std::numeric_limits<std::int64_t>::max()),
               "of the sampler", {"random_seed"}),
         field("thinking", &S::thinking, choice({"adaptive", "enabled", "disabled"}),
               "whether the model reasons before it answers; adaptive leaves it to the model",
               {"thinking_mode", "enable_thinking", "reasoning"}),
         field("thinking_tokens", &S::thinking_tokens, integer<int>(0, kAnyCount),
               "after so many tokens a reply's reasoning is closed; 0 means no limit",
               {"thinking_budget", "reasoning_budget", "budget_tokens"}),
         field("attention", &S::attention, choice({"model", "dense", "local", "retrofit"}),
               "model is what the model was trained for; retrofit runs a dense model on selected "
               "blocks, up to a million tokens; dense and local are comparisons for sparse models",
               {"attention_mode"}),
         field("kv", &S::kv, choice({"f32", "f16", "bf16", "int16", "int8"}),
               "how keys and values are kept", {"kv_type", "cache_type"}),
         field("chat_format", &S::chat_format, identifier(),
               "how conversations are written; auto takes what the model file says",
               {"chat_template", "template"})},
        {}};
    return section;
}

const Section<ToolsetSettings>& toolset_section() {
    using S = ToolsetSettings;
    static const Section<S> section{"agents.NAME.toolsets",
                                    {field("type", &S::type, choice({"shell", "files", "profiler"}),
                                           "which tools", {"name", "kind"}),
                                     field("timeout", &S::timeout, duration(), "of one call",
                                           {"timeout_sec", "timeout_seconds", "timeout_ms"}),
                                     field("max_timeout", &S::max_timeout, duration(),
                                           "the longest timeout a call may ask for")},
                                    {"type"}};
    return section;
}

const Section<LimitSettings>& limit_section() {
    using S = LimitSettings;
    static const Section<S> section{
        "agents.NAME.limits",
        {field("turns", &S::turns, integer<int>(0, kAnyCount), "model calls; 0 means no limit",
               {"max_turns", "max_turn", "max_iterations", "max_iter", "steps", "max_steps",
                "step_limit"}),
         field("tool_calls", &S::tool_calls, integer<int>(0, kAnyCount),
               "tool calls; 0 means no limit", {"max_tool_calls", "calls"}),
         field("tokens", &S::tokens, integer<std::int64_t>(0),
               "prompt and sampled together; 0 means no limit",
               {"max_tokens", "budget_token", "budget_tokens", "max_total_tokens", "total_tokens"}),
         field("output_tokens", &S::output_tokens, integer<std::int64_t>(0),
               "sampled in all; 0 means no limit", {"max_output_tokens"}),
         field("reply_tokens", &S::reply_tokens, integer<int>(1, kAnyCount), "sampled in one turn",
               {"max_reply_tokens", "max_new_tokens"}),
         field("tool_output_tokens", &S::tool_output_tokens, integer<int>(1, kAnyCount),
               "of one tool result"),
         field("time", &S::time, duration(), "wall time; 0 means no limit",
               {"timeout", "timeout_sec", "wall_time", "max_time", "time_limit"})},
        {}};
    return section;
}

const Section<AgentSettings>& agent_section() {
    using S = AgentSettings;
    static const Section<S> section{
        "agents.NAME",
        {field("model", &S::model, identifier(), "a name from models"),
         field("description", &S::description, text(), "one line, shown to other agents"),
         field("instruction", &S::instruction, text(), "the system message", {"system", "role"},
               {"instructions", "prompt", "system_prompt"}),
         field("toolsets", &S::toolsets, list_of(section_codec(toolset_section())),
               "what the agent may call", {"tools", "toolset"}),
         field("limits", &S::limits, section_codec(limit_section()), "what a run may use",
               {"limit", "budget"})},
        {}};
    return section;
}

const Section<SandboxSettings>& sandbox_section() {
    using S = SandboxSettings;
    static const Section<S> section{
        "sandbox",
        {field("require", &S::require, choice({"full", "landlock"}),
               "the weakest isolation to run with", {"level", "mode"}),
         field("network", &S::network, choice({"none"}), "commands have no network"),
         field("memory", &S::memory_bytes, byte_size(), "of one command and what it starts",
               {"memory_mb", "memory_bytes", "mem", "ram"}),
         field("pids", &S::pids, integer<int>(1, 1 << 22), "processes and threads of one command",
               {"max_pids", "processes"})},
        {}};
    return section;
}

const Section<KernelOptSettings>& kernel_opt_section() {
    using S = KernelOptSettings;
    static const Section<S> section{
        "kernel_opt",
        {field("tasks", &S::tasks, names_or_all(), "ids of kernel tasks, or all",
               {"task", "kernels"}),
         field("proposer", &S::proposer, choice({"moves", "search", "random", "edit", "scripted"}),
               "who proposes candidates"),
         field("evaluations", &S::evaluations, integer<int>(1, 1000000), "candidates tried a task",
               {"budget", "max_evaluations", "evals"}),
         field("model_share", &S::model_share, number(0, 1),
               "part of the evaluations the model chooses"),
         field("random_control", &S::random_control, flag(), "run a random arm at equal budget"),
         field("seed", &S::seed,
               integer<std::uint64_t>(0, std::numeric_limits<std::int64_t>::max()),
               "of the search, the inputs and the control"),
         field("pairs", &S::pairs, integer<int>(3, 10000), "timed pairs of anchor and candidate"),
         field("final_pairs", &S::final_pairs, integer<int>(25, 100000),
               "timed pairs of a finalist"),
         field("finalists", &S::finalists, integer<int>(1, 100),
               "best candidates that are timed again"),
         field("time", &S::time, duration(), "of the whole run; 0 means no limit",
               {"timeout", "time_limit"}),
         field("script", &S::script, list_of(text()), "replies of the scripted proposer")},
        {}};
    return section;
}

const Section<HarnessConfig>& top_section() {
    using S = HarnessConfig;
    static const Section<S> section{
        "the top level",
        {field("version", &S::version, integer<int>(1, 1), "of this vocabulary"),
         field("models", &S::models, map_of(section_codec(model_section())), "models by name",
               {"model", "llm"}),
         field("agents", &S::agents, map_of(section_codec(agent_section())), "agents by name",
               {"agent"}),
         field("sandbox", &S::sandbox, section_codec(sandbox_section()), "rules for every command"),
         field("kernel_opt", &S::kernel_opt, optional_of(section_codec(kernel_opt_section())),
               "makes faster kernels", {"kernel", "kernels"}),
         field("task", &S::task, text(), "what a plain agent run is to do"),
         field("workspace", &S::workspace, path(), "folder of a plain agent run"),
         field("run_dir", &S::run_dir, path(), "where the run is stored",
               {"run_directory", "output", "out"})},
        {}};
    return section;
}

// The places where names refer to other parts of the file, and the rules that span sections.
void check_references(ConfigReader& reader, const YamlNode& root, const HarnessConfig& config) {
    std::vector<std::string> models;
    for (const auto& [name, settings] : config.models) models.push_back(name);
    const YamlNode* agents = root.find("agents");
    for (const auto& [name, node] : agents ? agents->entries : std::vector<YamlEntry>{}) {
        const auto agent = config.agents.find(name.text);
        if (agent == config.agents.end() || config.models.contains(agent->second.model)) continue;
        if (models.empty() && agent->second.model == AgentSettings{}.model) continue;
        const YamlNode* model = node.find("model");
        reader.error(model ? *model : name,
                     fmt::format("agents.{}: no model is called '{}'{}", name.text,
                                 agent->second.model, models.empty() ? "; models is empty" : ""),
                     tools::nearest(agent->second.model, models));
    }
    for (const auto& [name, agent] : config.agents) {
        for (const ToolsetSettings& toolset : agent.toolsets) {
            if (toolset.timeout <= toolset.max_timeout) continue;
            reader.error(
                *agents->find(name),
                fmt::format("agents.{}.toolsets: timeout is larger than max_timeout", name));
        }
    }
    const YamlNode* kernel_opt = root.find("kernel_opt");
    if (kernel_opt && config.kernel_opt && config.kernel_opt->proposer == "scripted" &&
        config.kernel_opt->script.empty()) {
        reader.error(*kernel_opt, "kernel_opt: the scripted proposer needs a script");
    }
    if (kernel_opt && !config.task.empty()) {
        reader.error(*root.find("task"), "task is for a plain agent run; this file has kernel_opt");
    }
    if (!kernel_opt && config.task.empty()) {
        reader.error(root, "nothing to do: give a task for an agent, or kernel_opt");
    }
}

}  // namespace

std::string places_of_key(std::string_view key) {
    std::vector<std::string> places;
    const auto look = [&](const auto& section) {
        for (const auto& field : section.fields) {
            if (field.key == key) places.push_back(section.name);
        }
    };
    look(model_section());
    look(toolset_section());
    look(limit_section());
    look(agent_section());
    look(sandbox_section());
    look(kernel_opt_section());
    look(top_section());
    return fmt::format("{}", fmt::join(places, " or "));
}

boost::json::value to_json(const YamlNode& node) {
    if (node.quoted || node.kind != YamlNode::Kind::scalar) return boost::json::string(node.text);
    if (node.text == "true" || node.text == "false") return node.text == "true";
    std::size_t end = 0;
    if (node.text.find_first_not_of("0123456789") == node.text.npos)
        return std::stoll(node.text, &end);
    if (node.text.find_first_not_of("0123456789.") == node.text.npos)
        return std::stod(node.text, &end);
    return boost::json::string(node.text);
}

HarnessConfig parse_config(std::string_view text, const std::string& name,
                           const std::filesystem::path& base) {
    const YamlNode root = parse_yaml(text, name);
    ConfigReader reader(name, base);
    std::optional<HarnessConfig> config = section_codec(top_section()).read(reader, root);
    reader.finish();
    check_references(reader, root, *config);
    reader.finish();
    config->base = base;
    return *std::move(config);
}

HarnessConfig load_config(const std::filesystem::path& file) {
    const std::string name = file.string();
    constexpr std::size_t kMaxBytes = (1 << 20) + 1;  // one more than parse_yaml accepts
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    if (!std::filesystem::exists(status))
        throw ConfigError(name + ": no such file", name, 0, 0, "");
    if (!std::filesystem::is_regular_file(status)) {
        throw ConfigError(name + ": not a regular file", name, 0, 0, "");
    }
    std::ifstream in(file, std::ios::binary);
    std::string text(kMaxBytes, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (!in.is_open() || in.bad()) throw ConfigError(name + ": cannot be read", name, 0, 0, "");
    return parse_config(text, name, std::filesystem::absolute(file).parent_path());
}

std::string show_config(const HarnessConfig& config) {
    return print_yaml(section_codec(top_section()).write(config));
}

std::string config_schema() {
    boost::json::object schema = section_codec(top_section()).schema;
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    schema["title"] = "skein configuration";
    return boost::json::serialize(schema);
}

}  // namespace skein::harnesses
