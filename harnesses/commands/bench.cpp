// skein bench decode | prefill | select | fork | resume | engine | compare: speed after a depth, as
// shares of the machine's roof, and beside a peer's figures.

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harnesses/cli.h"
#include "harnesses/harness.h"
#include "harnesses/peer_report.h"
#include "harnesses/prefill_bar.h"
#include "model/bench.h"
#include "model/engine.h"

namespace skein::harnesses {
namespace {

struct BenchFlags {
    std::string model, peer_json, peer_model, fill = "prefill", folder;
    std::string attention = "model", kv = "int16";
    int threads = 0, prompt = 512, decode = 64, repetitions = 5;
    std::vector<int> depths = {0};
};

boost::json::object roof_json(const model::MachineRoof& roof) {
    return {{"threads", roof.threads},
            {"read_gb_per_s", roof.read_gb_per_s},
            {"fma_f32_gflop_per_s", roof.fma_f32_gflop_per_s},
            {"madd_int16_gop_per_s", roof.madd_int16_gop_per_s}};
}

/// One measured figure. What does not apply stays empty.
struct Row {
    std::string work;  ///< "decode@4096", "prefill512@0", "fork@131072"
    model::Spread figure;
    std::string unit = "tokens/s";
    std::optional<model::StepWork> step;  ///< what one of `tokens` a figure's unit counts needs
    int tokens = 1;
    std::optional<double> peer;
    std::string note;
};

/// Prints rows as they come and keeps them for the last JSON object.
class Table {
  public:
    Table(const CliContext& context, const model::Engine& engine, const BenchFlags& flags,
          const std::string& peer_engine = "")
        : json_(context.json), roof_(model::machine_roof(engine.threads())) {
        about_ = {{"model", engine.path().string()},
                  {"threads", engine.threads()},
                  {"numerics", engine.numerics_version()},
                  {"fill", flags.fill}};
        if (!peer_engine.empty()) about_["peer_engine"] = peer_engine;
        if (json_) return;
        if (!peer_engine.empty()) fmt::print("peer: {}\n", peer_engine);
        fmt::print("{} on {} threads, {}, cache filled by {}\n", engine.path().filename().string(),
                   engine.threads(), engine.numerics_version(), flags.fill);
        fmt::print("roof: {:.1f} GB/s read, {:.0f} GOP/s int16, {:.0f} GFLOP/s f32\n",
                   roof_.read_gb_per_s, roof_.madd_int16_gop_per_s, roof_.fma_f32_gflop_per_s);
        fmt::print("{:<20} {:>10} {:>21} {:>9} {:>8} {:>7} {:>8} {:>10} {:>6}\n", "work", "median",
                   "min - max", "unit", "MB read", "GB/s", "of roof", "peer", "ratio");
    }

    void add(const Row& row) {
        const double median = row.figure.median;
        const double seconds = row.tokens / median;  // of a step, where there is one
        const double share = row.step ? roof_.least_seconds(*row.step) / seconds : 0;
        const double bytes = row.step ? row.step->bytes() : 0;
        rows_.push_back(json_of(row, share, bytes / seconds / 1e9));
        if (json_) return;
        const auto cell = [&](bool there, const std::string& text) { return there ? text : "-"; };
        const bool moves = row.step && row.tokens == 1;
        fmt::print("{:<20} {:>10.5g} {:>21} {:>9} {:>8} {:>7} {:>8} {:>10} {:>6}{}\n", row.work,
                   median, fmt::format("{:.5g} - {:.5g}", row.figure.min, row.figure.max), row.unit,
                   cell(moves, fmt::format("{:.2f}", bytes / 1e6)),
                   cell(moves, fmt::format("{:.1f}", bytes / seconds / 1e9)),
                   cell(row.step.has_value(), fmt::format("{:.0f} %", 100 * share)),
                   cell(row.peer.has_value(), fmt::format("{:.5g}", row.peer.value_or(0))),
                   cell(row.peer.has_value(), fmt::format("{:.2f}", median / row.peer.value_or(1))),
                   row.note.empty() ? "" : "  " + row.note);
    }

    void finish() const {
        if (!json_) return;
        boost::json::object result = about_;
        result["rows"] = rows_;
        result["roof"] = roof_json(roof_);
        print_json(result);
    }

  private:
    static boost::json::object json_of(const Row& row, double share, double gb_per_s) {
        boost::json::object object{{"work", row.work},
                                   {"ours", row.figure.median},
                                   {"min", row.figure.min},
                                   {"max", row.figure.max},
                                   {"repetitions", row.figure.n},
                                   {"unit", row.unit},
                                   {"peer", nullptr},
                                   {"ratio", nullptr}};
        if (row.step) {
            object["share_of_roof"] = share;
            object["projection_ops"] = row.step->projection_ops;
            object["index_ops"] = row.step->index_ops;
            object["attention_flops"] = row.step->attention_flops;
            object["weight_bytes"] = row.step->weight_bytes;
            if (row.tokens == 1) {
                object["kv_bytes"] = row.step->kv_bytes;
                object["index_bytes"] = row.step->index_bytes;
                object["gb_per_s"] = gb_per_s;
            }
        }
        if (row.peer) {
            object["peer"] = *row.peer;
            object["ratio"] = row.figure.median / *row.peer;
        }
        if (!row.note.empty()) object["note"] = row.note;
        return object;
    }

    bool json_;
    model::MachineRoof roof_;
    boost::json::object about_;
    boost::json::array rows_;
};

std::shared_ptr<const model::Engine> load(const BenchFlags& flags,
                                          std::optional<model::AttentionMode> attention = {}) {
    ModelSettings settings;
    if (!flags.model.empty()) settings.path = flags.model;
    model::EngineOptions options;
    options.threads = flags.threads;
    options.attention = attention.value_or(attention_of(flags.attention));
    options.kv = kv_type_of(flags.kv);
    return model::Engine::load(model_path(settings), options);
}

model::SpeedOptions speed_options(const BenchFlags& flags, int depth) {
    model::SpeedOptions options;
    options.prompt_tokens = flags.prompt;
    options.decode_tokens = flags.decode;
    options.depth = depth;
    options.repetitions = flags.repetitions;
    options.synthetic = flags.fill == "synthetic";
    return options;
}

Row prefill_row(const model::SpeedReport& speed) {
    const model::SpeedOptions& options = speed.options;
    return {fmt::format("prefill{}@{}", options.prompt_tokens, options.depth),
            speed.prefill_tokens_per_s,
            "tokens/s",
            speed.prefill,
            options.prompt_tokens,
            {},
            {}};
}

Row decode_row(const model::SpeedReport& speed) {
    return {fmt::format("decode@{}", speed.options.depth),
            speed.decode_tokens_per_s,
            "tokens/s",
            speed.decode,
            1,
            {},
            {}};
}

/// decode, prefill, engine, compare.
ExitCode bench_speed(const CliContext& context, const BenchFlags& flags, model::SpeedPart part) {
    std::optional<PeerReport> peer;
    if (!flags.peer_json.empty()) peer = PeerReport::read(flags.peer_json);
    const auto engine = load(flags);
    if (peer && flags.peer_model.empty()) peer->choose_model_of(engine->path());
    if (peer && !flags.peer_model.empty()) peer->choose_model(flags.peer_model);
    Table table(context, *engine, flags, peer ? peer->engine() : "");
    for (const int depth : flags.depths) {
        PrefillBar bar("fill");
        const model::SpeedReport speed =
            model::measure_speed(*engine, speed_options(flags, depth), part, &bar);
        Row prefill = prefill_row(speed), decode = decode_row(speed);
        if (peer) {
            prefill.peer = peer->figure("pp", flags.prompt, depth, engine->threads());
            decode.peer = peer->figure("tg", flags.decode, depth, engine->threads());
        }
        bar.finish();
        if (part != model::SpeedPart::decode) table.add(prefill);
        if (part != model::SpeedPart::prefill) table.add(decode);
    }
    table.finish();
    return ExitCode::done;
}

ExitCode bench_select(const CliContext& context, const BenchFlags& flags) {
    const auto engine = load(flags);
    const auto local = load(flags, model::AttentionMode::local);
    Table table(context, *engine, flags);
    for (const int depth : flags.depths) {
        PrefillBar bar("fill");
        const model::SelectReport select =
            model::measure_select(*engine, *local, speed_options(flags, depth), &bar);
        bar.finish();
        for (const bool selecting : {true, false}) {
            const model::SpeedReport& speed = selecting ? select.selecting : select.local;
            for (Row row : {prefill_row(speed), decode_row(speed)}) {
                const bool is_decode = row.tokens == 1 && row.work.starts_with("decode");
                const double share = is_decode ? select.decode_share() : select.prefill_share();
                row.note = selecting ? fmt::format("selection: {:.0f} % of the time", 100 * share)
                                     : "the last blocks, without selection";
                if (!selecting) row.work = "local " + row.work;
                table.add(row);
            }
        }
    }
    table.finish();
    return ExitCode::done;
}

ExitCode bench_fork(const CliContext& context, const BenchFlags& flags) {
    const auto engine = load(flags);
    Table table(context, *engine, flags);
    int copied = 0;
    for (const int depth : flags.depths) {
        PrefillBar bar("fill");
        const model::ForkReport fork =
            model::measure_fork(*engine, speed_options(flags, depth), &bar);
        bar.finish();
        copied += fork.copied_full_blocks;
        Row row;
        row.work = fmt::format("fork@{}", depth);
        row.figure = fork.microseconds;
        row.unit = "us";
        row.note =
            fmt::format("copied full blocks: {} of {}", fork.copied_full_blocks, fork.full_blocks);
        table.add(row);
    }
    table.finish();
    return copied == 0 ? ExitCode::done : ExitCode::mismatch;
}

ExitCode bench_resume(const CliContext& context, const BenchFlags& flags) {
    const auto engine = load(flags);
    Table table(context, *engine, flags);
    std::filesystem::path folder = flags.folder;
    if (folder.empty()) folder = std::filesystem::temp_directory_path();
    const auto file = folder / fmt::format("skein-bench-{}.session", getpid());
    bool good = true;
    for (const int depth : flags.depths) {
        PrefillBar bar("fill");
        const model::ResumeReport resume =
            model::measure_resume(*engine, speed_options(flags, depth), file, &bar);
        bar.finish();
        good = good && resume.evaluated == 0 && resume.same_logits;
        Row row;
        row.work = fmt::format("save@{}", depth);
        row.figure = resume.save_seconds;
        row.unit = "s";
        row.note = fmt::format("{:.1f} MB", static_cast<double>(resume.file_bytes) / 1e6);
        table.add(row);
        row.work = fmt::format("load@{}", depth);
        row.figure = resume.load_seconds;
        row.note = fmt::format("tokens evaluated: {}, logits {}", resume.evaluated,
                               resume.same_logits ? "identical" : "DIFFERENT");
        table.add(row);
    }
    table.finish();
    return good ? ExitCode::done : ExitCode::mismatch;
}

}  // namespace

void add_bench_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand(
        "bench", "Speed after a depth: decode, prefill, select, fork, resume; beside a peer's");
    app->require_subcommand(1);
    app->footer(
        "Figures are medians over --repetitions. 'of roof' is the least time this machine needs\n"
        "for the bytes and operations, measured in the same run, divided by the time taken;\n"
        "above 100 % means that the weights fit the caches, or that the machine was slower when "
        "its\n"
        "roof was measured.");
    auto flags = std::make_shared<BenchFlags>();
    const auto command = [&](const char* name, const char* help, auto run) {
        CLI::App* sub = app->add_subcommand(name, help);
        sub->add_option("--model", flags->model, "Model file (default: the default model)");
        sub->add_option("--threads", flags->threads, "Inference threads (0: all cores)");
        sub->add_option("--attention", flags->attention,
                        "What the model was trained for, or another mode of attention")
            ->check(CLI::IsMember({"model", "dense", "local", "retrofit"}))
            ->capture_default_str();
        sub->add_option("--kv", flags->kv, "How keys and values are kept")
            ->check(CLI::IsMember({"f32", "f16", "bf16", "int16", "int8"}))
            ->capture_default_str();
        sub->add_option("--depth,--depths", flags->depths,
                        "Tokens already in the context: numbers, or 4k, 128k, 1m; commas between")
            ->delimiter(',')
            ->transform(depth_names())
            ->capture_default_str();
        sub->add_option("--fill", flags->fill,
                        "How they got there: prefill, or synthetic (pseudo-random keys and values)")
            ->check(CLI::IsMember({"prefill", "synthetic"}))
            ->capture_default_str();
        sub->add_option("--prompt", flags->prompt, "Tokens of a prompt piece")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        sub->add_option("--decode", flags->decode, "Single-token steps a repetition")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        sub->add_option("--reps,--repetitions", flags->repetitions, "Runs a figure")
            ->check(CLI::Range(1, 10000))
            ->capture_default_str();
        on_command(*sub, context, [&context, flags, run] { return run(context, *flags); });
        return sub;
    };
    const auto speed = [](model::SpeedPart part) {
        return [part](const CliContext& c, const BenchFlags& f) { return bench_speed(c, f, part); };
    };
    command("decode", "Single tokens after the depth", speed(model::SpeedPart::decode));
    command("prefill", "A prompt piece after the depth", speed(model::SpeedPart::prefill));
    command("select", "The share of the time that selecting blocks takes", bench_select);
    command("fork", "Time of a fork, and full blocks it copied (exit 8 if any)", bench_fork);
    command("resume", "Save and load of a timeline (exit 8 if a token was evaluated)", bench_resume)
        ->add_option("--folder", flags->folder, "Where the saved timeline lies meanwhile");
    command("engine", "prefill and decode", speed(model::SpeedPart::both));
    CLI::App* compare = command("compare", "The same beside a peer's figures, with the ratio",
                                speed(model::SpeedPart::both));
    compare
        ->add_option("--peer-json", flags->peer_json, "Output of tests/bench/peers/llama_bench.py")
        ->required();
    compare->add_option("--peer-model", flags->peer_model,
                        "File name of the model in it (default: that of --model)");
}

}  // namespace skein::harnesses
