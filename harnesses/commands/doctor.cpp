// skein doctor: what this machine can enforce and how fast it is, with remedies.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <thread>

#include "harnesses/cli.h"
#include "harnesses/paths.h"
#include "model/bench.h"
#include "model/engine.h"
#include "sandbox/sandbox.h"

namespace skein::harnesses {
namespace {

boost::json::array models_found() {
    boost::json::array models;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(model_cache(), error)) {
        if (entry.path().extension() != ".gguf") continue;
        models.push_back(
            boost::json::object{{"path", entry.path().string()}, {"bytes", entry.file_size()}});
    }
    return models;
}

ExitCode doctor(const CliContext& context) {
    auto sandbox = sandbox::make_linux_sandbox();
    const sandbox::ProbeReport& probe = sandbox->probe();
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const model::MachineRoof roof = model::machine_roof(threads);
    const std::string isa = roof.madd_int16_gop_per_s > 0 ? "avx2" : "scalar";
    const auto models = models_found();
    const bool isolated = probe.level == sandbox::Level::full;

    boost::json::array layers;
    for (const sandbox::ProbeLine& line : probe.lines) {
        layers.push_back(boost::json::object{{"layer", line.layer},
                                             {"ok", line.ok},
                                             {"detail", line.detail},
                                             {"remedy", line.remedy}});
        if (context.json) continue;
        fmt::print("{} {:<22} {}\n", line.ok ? "ok  " : "FAIL", line.layer, line.detail);
        if (!line.ok && !line.remedy.empty()) fmt::print("     {:<22} {}\n", "", line.remedy);
    }
    if (context.json) {
        print_json(
            {{"sandbox",
              boost::json::object{{"level", sandbox::to_string(probe.level)}, {"layers", layers}}},
             {"engine",
              boost::json::object{
                  {"isa", isa},
                  {"roof", boost::json::object{{"read_gb_per_s", roof.read_gb_per_s},
                                               {"fma_f32_gflop_per_s", roof.fma_f32_gflop_per_s},
                                               {"threads", roof.threads}}}}},
             {"devices", boost::json::array{}},
             {"models", models}});
    } else {
        fmt::print("sandbox level: {}\n", sandbox::to_string(probe.level));
        fmt::print("engine: {}, {} threads, {:.1f} GB/s read, {:.0f} GFLOP/s f32\n", isa,
                   roof.threads, roof.read_gb_per_s, roof.fma_f32_gflop_per_s);
        for (const auto& item : models) {
            fmt::print("model: {}\n", std::string(item.at("path").as_string()));
        }
        if (models.empty()) {
            fmt::print("model: none in {}; ./bootstrap.sh or `skein model fetch` gets one\n",
                       model_cache().string());
        }
    }
    return isolated ? ExitCode::done : ExitCode::infrastructure;
}

}  // namespace

void add_doctor_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("doctor", "Check isolation, speed and models here");
    on_command(*app, context, [&context] { return doctor(context); });
}

}  // namespace skein::harnesses
