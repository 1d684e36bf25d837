// skein model fetch | inspect.

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cstdio>
#include <fstream>

#include "agent/store/codec.h"
#include "harnesses/cli.h"
#include "harnesses/model_fetch.h"
#include "harnesses/paths.h"
#include "model/load/model_file.h"

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

ExitCode inspect(const CliContext& context, const std::string& path) {
    const auto file = model::open_model_file(path.empty() ? default_model_path().string() : path);
    const model::ModelConfig config = file->config();
    boost::json::object metadata;
    for (const auto& [key, value] : file->describe()) metadata[key] = value;
    if (context.json) {
        print_json({{"path", file->path().string()},
                    {"format", file->format()},
                    {"architecture", config.architecture},
                    {"layers", config.n_layers()},
                    {"dim", config.dim},
                    {"heads", config.n_heads},
                    {"kv_heads", config.n_kv_heads},
                    {"vocab_size", config.vocab_size},
                    {"max_context", config.max_context},
                    {"tensors", file->tensors().size()},
                    {"bytes", file->total_bytes()},
                    {"metadata", metadata}});
        return ExitCode::done;
    }
    fmt::print("{} ({}, {:.1f} MB, {} tensors)\n", file->path().string(), file->format(),
               static_cast<double>(file->total_bytes()) / 1e6, file->tensors().size());
    for (const auto& [key, value] : file->describe()) fmt::print("  {:<44} {}\n", key, value);
    for (const model::Tensor& tensor : file->tensors()) {
        fmt::print("  {:<36} {:<7} {}\n", tensor.name, model::dtype_info(tensor.type).name,
                   fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims, " x "));
    }
    return ExitCode::done;
}

}  // namespace

void add_model_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("model", "Model files: fetch, inspect");
    app->require_subcommand(1);
    CLI::App* get = app->add_subcommand("fetch", "Get the default model into the cache");
    on_command(*get, context, [&context] { return fetch(context); });
    auto path = std::make_shared<std::string>();
    CLI::App* look = app->add_subcommand("inspect", "Check a model file and show what it holds");
    look->add_option("path", *path, "GGUF file or safetensors folder (default: the default model)");
    on_command(*look, context, [&context, path] { return inspect(context, *path); });
}

}  // namespace skein::harnesses
