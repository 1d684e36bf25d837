#pragma once
// A run's YAML as plain structs, every key checked. The vocabulary follows what people already
// write: named models, named agents, toolsets by type, limits, a sandbox, and the harness's own
// block.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace skein::harnesses {

/// What is wrong in a configuration, where, and what was probably meant. `what()` holds all of it
/// as "FILE:LINE:COLUMN: message; did you mean 'x'?", one line an error when there are several.
class ConfigError : public std::runtime_error {
  public:
    ConfigError(std::string what, std::string in_file, int at_line, int at_column,
                std::string meant)
        : std::runtime_error(std::move(what)),
          file(std::move(in_file)),
          line(at_line),
          column(at_column),
          suggestion(std::move(meant)) {}
    std::string file;
    int line = 0, column = 0;  ///< of the first error, from 1
    std::string suggestion;
};

struct ModelSettings {
    std::string path =
        "default";        ///< a GGUF file or safetensors folder; "default": the fetched one
    int threads = 0;      ///< 0: all cores
    int max_context = 0;  ///< 0: what the model was trained for
    double temperature = 0.7;
    int top_k = 0;
    double top_p = 1.0, min_p = 0.0;
    std::uint64_t seed = 1;
    std::string thinking = "adaptive";  ///< "adaptive", "enabled", "disabled"
    int thinking_tokens = 0;            ///< of one reply; 0: no limit of its own
    std::string chat_format = "auto";   ///< "auto": what the model file says
    std::string attention = "model";    ///< "model", "dense", "local", "retrofit"
    std::string kv = "int16";           ///< "f32", "f16", "bf16", "int16", "int8"
};

struct ToolsetSettings {
    std::string type;  ///< "shell", "files", "profiler"
    std::chrono::milliseconds timeout{120000}, max_timeout{1800000};
};

struct LimitSettings {
    int turns = 50, tool_calls = 0;
    std::int64_t tokens = 0, output_tokens = 0;
    int reply_tokens = 2048, tool_output_tokens = 4096;
    std::chrono::milliseconds time{0};
};

struct AgentSettings {
    std::string model = "main";
    std::string description, instruction;
    std::vector<ToolsetSettings> toolsets;
    LimitSettings limits;
};

struct SandboxSettings {
    std::string require = "full";  ///< "full" or "landlock"
    std::string network = "none";
    std::uint64_t memory_bytes = 4ULL << 30;
    int pids = 256;
};

struct KernelOptSettings {
    std::vector<std::string> tasks;  ///< ids; empty: all
    std::string proposer = "moves";  ///< moves, search, random, edit, scripted
    int evaluations = 24;
    double model_share = 0.25;
    bool random_control = true;
    std::uint64_t seed = 1;
    int pairs = 9, final_pairs = 25, finalists = 3;
    std::chrono::milliseconds time{0};  ///< of the whole run; 0: no limit
    std::vector<std::string> script;    ///< replies of the scripted proposer
};

struct HarnessConfig {
    int version = 1;
    std::map<std::string, ModelSettings> models;
    std::map<std::string, AgentSettings> agents;
    SandboxSettings sandbox;
    std::optional<KernelOptSettings> kernel_opt;
    std::string task;  ///< of a plain agent run
    std::filesystem::path
        workspace;                  ///< of a plain agent run; empty: a new one in the run directory
    std::filesystem::path run_dir;  ///< empty: a new directory below the runs folder
    std::filesystem::path base;     ///< folder of the file: relative paths resolve against it
};

/// Throws: ConfigError; also for a file that is missing, too large or not YAML.
HarnessConfig load_config(const std::filesystem::path& file);
/// The same from text; `name` stands for the file in messages.
HarnessConfig parse_config(std::string_view text, const std::string& name,
                           const std::filesystem::path& base);
/// The configuration with every default filled in, as YAML that parses back to the same.
std::string show_config(const HarnessConfig& config);
/// A JSON Schema for editors, from the same table that drives parsing.
std::string config_schema();

}  // namespace skein::harnesses
