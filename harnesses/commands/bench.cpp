// skein bench engine | compare: speed as shares of the machine's roof, and against a peer.

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>

#include "harnesses/cli.h"
#include "harnesses/harness.h"
#include "model/bench.h"
#include "model/engine.h"

namespace skein::harnesses {
namespace {

struct BenchFlags {
    std::string model, peer_json;
    int threads = 0, prompt = 512, decode = 64, repetitions = 5;
    std::vector<int> depths = {0};
};

boost::json::object roof_json(const model::MachineRoof& roof) {
    return {{"threads", roof.threads},
            {"read_gb_per_s", roof.read_gb_per_s},
            {"fma_f32_gflop_per_s", roof.fma_f32_gflop_per_s},
            {"madd_int16_gop_per_s", roof.madd_int16_gop_per_s}};
}

std::shared_ptr<const model::Engine> load(const BenchFlags& flags) {
    ModelSettings settings;
    if (!flags.model.empty()) settings.path = flags.model;
    model::EngineOptions options;
    options.threads = flags.threads;
    return model::Engine::load(model_path(settings), options);
}

/// The figures that a peer's report (JSON lines or an array of objects) gives for this work.
double peer_figure(const boost::json::value& report, const std::string& kind, int n, int depth) {
    const std::string key = kind + std::to_string(n);
    double best = 0;
    const auto look = [&](const auto& self, const boost::json::value& value) -> void {
        if (value.is_array()) {
            for (const auto& item : value.get_array()) self(self, item);
        } else if (value.is_object()) {
            const auto& object = value.get_object();
            const auto* at = object.if_contains("depth");
            const auto* figure = object.if_contains(key);
            if (at != nullptr && at->is_number() && at->to_number<int>() == depth &&
                figure != nullptr) {
                if (figure->is_number()) best = figure->to_number<double>();
                if (figure->is_object() && figure->get_object().contains("median")) {
                    best = figure->get_object().at("median").to_number<double>();
                }
            }
            for (const auto& member : object) self(self, member.value());
        }
    };
    look(look, report);
    return best;
}

boost::json::value read_peer(const std::string& file) {
    std::ifstream stream(file);
    if (!stream) throw UsageError("cannot read " + file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    boost::json::error_code bad;
    boost::json::value report = boost::json::parse(text, bad);
    if (bad) throw UsageError(file + " is not JSON: " + bad.message());
    return report;
}

double share_of(double figure, double roof) {
    return roof > 0 ? figure / roof : 0;
}

ExitCode bench(const CliContext& context, const BenchFlags& flags) {
    boost::json::value peer;
    if (!flags.peer_json.empty()) peer = read_peer(flags.peer_json);
    const auto engine = load(flags);
    const model::MachineRoof roof = model::machine_roof(engine->threads());
    boost::json::array rows;
    if (!context.json) {
        fmt::print("{} on {} threads, {}; roof {:.1f} GB/s read, {:.0f} GOP/s int16\n",
                   engine->path().filename().string(), engine->threads(),
                   engine->numerics_version(), roof.read_gb_per_s, roof.madd_int16_gop_per_s);
        fmt::print("{:<12} {:>12} {:>20} {:>10} {:>14} {:>8}\n", "work", "tokens/s", "min - max",
                   "of roof", "peer tokens/s", "ratio");
    }
    for (const int depth : flags.depths) {
        const model::SpeedReport speed =
            model::measure_speed(*engine, {flags.prompt, flags.decode, depth, flags.repetitions});
        // "pp512@0": 512 prompt tokens after 0; "tg64@0": 64 single tokens after 0.
        const auto add = [&](const std::string& kind, int n, const model::Spread& s, double share) {
            const double other = peer.is_null() ? 0 : peer_figure(peer, kind, n, depth);
            const std::string work = fmt::format("{}{}@{}", kind, n, depth);
            boost::json::object row{{"work", work},           {"ours", s.median},
                                    {"min", s.min},           {"max", s.max},
                                    {"share_of_roof", share}, {"unit", "tokens/s"},
                                    {"peer", nullptr},        {"ratio", nullptr}};
            if (other > 0) {
                row["peer"] = other;
                row["ratio"] = s.median / other;
            }
            rows.push_back(row);
            if (context.json) return;
            fmt::print("{:<12} {:>12.1f} {:>20} {:>9.0f}% {:>14} {:>8}\n", work, s.median,
                       fmt::format("{:.1f} - {:.1f}", s.min, s.max), 100 * share,
                       other > 0 ? fmt::format("{:.1f}", other) : "-",
                       other > 0 ? fmt::format("{:.2f}", s.median / other) : "-");
        };
        add("pp", flags.prompt, speed.prefill_tokens_per_s,
            share_of(speed.prefill_gflop_per_s, roof.madd_int16_gop_per_s));
        add("tg", flags.decode, speed.decode_tokens_per_s,
            share_of(speed.decode_gb_per_s, roof.read_gb_per_s));
    }
    if (context.json) print_json({{"rows", rows}, {"roof", roof_json(roof)}});
    return ExitCode::done;
}

}  // namespace

void add_bench_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("bench", "Speed of the engine, alone or against a peer");
    app->require_subcommand(1);
    auto flags = std::make_shared<BenchFlags>();
    const auto common = [&](CLI::App* command) {
        command->add_option("--model", flags->model, "Model file (default: the default model)");
        command->add_option("--threads", flags->threads, "Inference threads");
        command->add_option("--prompt", flags->prompt, "Prompt tokens")->capture_default_str();
        command->add_option("--decode", flags->decode, "Single-token steps")->capture_default_str();
        command->add_option("--repetitions", flags->repetitions, "Runs a figure")
            ->capture_default_str();
        command->add_option("--depths", flags->depths, "Tokens already in the context")
            ->delimiter(',')
            ->capture_default_str();
        on_command(*command, context, [&context, flags] { return bench(context, *flags); });
    };
    common(app->add_subcommand("engine", "Prefill and decode in tokens/s and shares of the roof"));
    CLI::App* compare =
        app->add_subcommand("compare", "The same beside a peer's figures, with the ratio");
    common(compare);
    compare
        ->add_option("--peer-json", flags->peer_json, "Output of tests/bench/peers/llama_bench.py")
        ->required();
}

}  // namespace skein::harnesses
