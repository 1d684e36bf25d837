// skein model fetch | inspect.

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harnesses/cli.h"
#include "harnesses/model_fetch.h"
#include "harnesses/paths.h"
#include "model/error.h"
#include "model/kv/kv_layout.h"
#include "model/load/inventory.h"
#include "model/load/model_file.h"
#include "model/load/weights.h"
#include "model/text/tokenizer.h"

namespace skein::harnesses {
namespace {

ExitCode fetch(const CliContext& context) {
    const std::filesystem::path path =
        fetch_default_model([&](const std::string& line) { fmt::print(stderr, "{}\n", line); });
    if (context.json)
        print_json({{"model", path.string()}, {"sha256", kDefaultModelSha256}});
    else
        fmt::print("{}\n", path.string());
    return ExitCode::done;
}

struct InspectOptions {
    std::string path;
    bool dense_approximation = false;
    bool tensors = false;
};

/// What could be read of a model, and why the rest could not.
struct Inspected {
    std::unique_ptr<model::ModelFile> file;
    std::optional<model::ModelConfig> config;
    std::optional<model::Inventory> inventory;
    std::vector<std::string> notes, unsupported;
};

Inspected look_into(const InspectOptions& options) {
    Inspected seen;
    seen.file =
        model::open_model_file(options.path.empty() ? default_model_path().string() : options.path);
    const auto attempt = [&](auto step) {
        try {
            step();
        } catch (const model::Error& error) {
            seen.unsupported.emplace_back(error.what());
        }
    };
    attempt([&] {
        seen.config = seen.file->config({.dense_approximation = options.dense_approximation});
        const model::Weights weights =
            model::bind_weights(*seen.file, *seen.config, {.convert = false});
        seen.inventory = model::take_inventory(*seen.config, weights);
        seen.notes = weights.notes;
    });
    attempt([&] { const model::Tokenizer usable(seen.file->vocabulary()); });
    return seen;
}

using LayerKinds = std::map<std::string, int>;

LayerKinds layer_kinds(const model::ModelConfig& config) {
    LayerKinds kinds;
    for (const model::LayerConfig& layer : config.layers) {
        const bool sparse = layer.attention == model::AttentionKind::msa;
        const bool experts = layer.mlp == model::MlpKind::moe;
        ++kinds[fmt::format("{} attention, {}", sparse ? "sparse" : "dense",
                            experts ? "experts" : "dense MLP")];
    }
    return kinds;
}

boost::json::array as_array(const std::vector<std::string>& lines) {
    return boost::json::array(lines.begin(), lines.end());
}

void add_config(boost::json::object& out, const model::ModelConfig& config) {
    out["architecture"] = config.architecture;
    out["layers"] = config.n_layers();
    boost::json::object& kinds = out["layer_kinds"].emplace_object();
    for (const auto& [kind, count] : layer_kinds(config)) kinds[kind] = count;
    out["dim"] = config.dim;
    out["heads"] = config.n_heads;
    out["kv_heads"] = config.n_kv_heads;
    out["head_dim"] = config.head_dim;
    out["rope_dim"] = config.rope_dim;
    out["vocab_size"] = config.vocab_size;
    out["max_context"] = config.max_context;
    out["dense_approximation"] = config.dense_approximation;
    if (config.msa.top_k > 0) {
        out["selection"] = {{"blocks", config.msa.top_k},
                            {"block_tokens", config.msa.block_tokens},
                            {"index_dim", config.msa.index_dim}};
    }
    if (config.moe.n_experts > 0) {
        out["experts"] = {{"count", config.moe.n_experts},
                          {"used", config.moe.n_used},
                          {"width", config.moe.expert_dim},
                          {"shared_width", config.moe.shared_dim}};
    }
}

void add_inventory(boost::json::object& out, const model::Inventory& inventory) {
    out["parameters"] = inventory.parameters;
    out["active_parameters"] = inventory.active_parameters;
    boost::json::object& parts = out["parts"].emplace_object();
    for (const model::PartSize& part : inventory.parts) {
        boost::json::object types;
        for (const auto& [type, bytes] : part.bytes_by_type) types[type] = bytes;
        parts[part.name] = {
            {"parameters", part.parameters}, {"bytes", part.bytes}, {"types", types}};
    }
}

/// What a token of context costs with each type of keys and values, as the engine lays them out.
void for_kv_types(const model::ModelConfig& config,
                  const std::function<void(const model::KvLayout& layout)>& use) {
    using Type = model::KvType;
    for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::int16, Type::int8})
        use(model::KvLayout(config, type));
}

void print_inspected_json(const Inspected& seen) {
    boost::json::object out{{"path", seen.file->path().string()},
                            {"format", seen.file->format()},
                            {"tensors", seen.file->tensors().size()},
                            {"bytes", seen.file->total_bytes()}};
    if (seen.config) add_config(out, *seen.config);
    if (seen.inventory) add_inventory(out, *seen.inventory);
    if (seen.config) {
        boost::json::object& kv = out["kv_bytes_per_token"].emplace_object();
        for_kv_types(*seen.config, [&](const model::KvLayout& layout) {
            kv[model::kv_type_name(layout.type())] = {
                {"key_value", layout.key_value_bytes_per_token()},
                {"index", layout.index_bytes_per_token()}};
        });
    }
    out["notes"] = as_array(seen.notes);
    out["unsupported"] = as_array(seen.unsupported);
    boost::json::object& metadata = out["metadata"].emplace_object();
    for (const auto& [key, value] : seen.file->describe()) metadata[key] = value;
    print_json(out);
}

void print_config(const model::ModelConfig& config) {
    fmt::print("  {:<16} {} {}\n", "architecture", config.architecture, config.name);
    for (const auto& [kind, count] : layer_kinds(config)) {
        fmt::print("  {:<16} {} with {}\n", "layers", count, kind);
    }
    fmt::print("  {:<16} width {}, {} query heads and {} key-value heads of {}, {} rotated\n",
               "shape", config.dim, config.n_heads, config.n_kv_heads, config.head_dim,
               config.rope_dim);
    fmt::print("  {:<16} {} tokens, vocabulary {}\n", "context", config.max_context,
               config.vocab_size);
    if (config.msa.top_k > 0) {
        fmt::print("  {:<16} {} blocks of {} tokens, by index keys of {}\n", "selection",
                   config.msa.top_k, config.msa.block_tokens, config.msa.index_dim);
    }
    if (config.moe.n_experts > 0) {
        fmt::print("  {:<16} {} of {} for a token, width {}, shared width {}\n", "experts",
                   config.moe.n_used, config.moe.n_experts, config.moe.expert_dim,
                   config.moe.shared_dim);
    }
}

void print_inventory(const model::Inventory& inventory) {
    for (const model::PartSize& part : inventory.parts) {
        std::string types;
        for (const auto& [type, bytes] : part.bytes_by_type) {
            types += (types.empty() ? "" : ", ") + std::string(type);
        }
        fmt::print("  {:<16} {:>15} parameters {:>15} bytes  {}\n", part.name, part.parameters,
                   part.bytes, types);
    }
    fmt::print("  {:<16} {:>15} parameters {:>15} bytes, {} parameters for a token\n", "all",
               inventory.parameters, inventory.bytes, inventory.active_parameters);
}

void print_kv_sizes(const model::ModelConfig& config) {
    for_kv_types(config, [](const model::KvLayout& layout) {
        fmt::print("  {:<16} {:>15} bytes a token in {}", "cache",
                   layout.key_value_bytes_per_token(), model::kv_type_name(layout.type()));
        if (layout.index_bytes_per_token() > 0)
            fmt::print(", and {} of index keys", layout.index_bytes_per_token());
        fmt::print("\n");
    });
}

ExitCode inspect(const CliContext& context, const InspectOptions& options) {
    const Inspected seen = look_into(options);
    const ExitCode code = seen.unsupported.empty() ? ExitCode::done : ExitCode::engine_error;
    if (context.json) {
        print_inspected_json(seen);
        return code;
    }
    fmt::print("{} ({}, {:.1f} MB, {} tensors)\n", seen.file->path().string(), seen.file->format(),
               static_cast<double>(seen.file->total_bytes()) / 1e6, seen.file->tensors().size());
    if (seen.config) print_config(*seen.config);
    if (seen.inventory) print_inventory(*seen.inventory);
    if (seen.config) print_kv_sizes(*seen.config);
    for (const std::string& note : seen.notes) fmt::print("  note: {}\n", note);
    for (const std::string& reason : seen.unsupported) {
        fmt::print(stderr, "unsupported: {}\n", reason);
    }
    for (const auto& [key, value] : seen.file->describe()) fmt::print("  {:<44} {}\n", key, value);
    if (!options.tensors) return code;
    for (const model::Tensor& tensor : seen.file->tensors()) {
        fmt::print("  {:<36} {:<7} {}\n", tensor.name, model::dtype_info(tensor.type).name,
                   fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims, " x "));
    }
    return code;
}

}  // namespace

void add_model_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("model", "Model files: fetch, inspect");
    app->require_subcommand(1);
    CLI::App* get = app->add_subcommand("fetch", "Get the default model into the cache");
    on_command(*get, context, [&context] { return fetch(context); });
    auto options = std::make_shared<InspectOptions>();
    CLI::App* look = app->add_subcommand(
        "inspect", "Check a model file and show its layers, sizes and what is not supported");
    look->add_option("path", options->path,
                     "GGUF file or safetensors folder (default: the default model)");
    look->add_flag("--dense-approximation", options->dense_approximation,
                   "Look at a sparse model as if every layer had dense attention");
    look->add_flag("--tensors", options->tensors, "List every tensor");
    on_command(*look, context, [&context, options] { return inspect(context, *options); });
}

}  // namespace skein::harnesses
