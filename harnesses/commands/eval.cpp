// skein eval recall: does the model find one record among thousands, and does selection reach it?

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <optional>
#include <string>

#include "harnesses/cli.h"
#include "harnesses/eval/recall.h"
#include "harnesses/harness.h"
#include "harnesses/prefill_bar.h"
#include "model/engine.h"

namespace skein::harnesses {
namespace {

struct RecallFlags {
    std::string model;
    int depth = 4096, questions = 64, threads = 0;
    std::uint64_t seed = 1;
    bool control_only = false, no_control = false;
    double min_recall = 0;
};

constexpr auto kControl = model::AttentionMode::local;

struct RecallRun {
    RecallReport report;
    std::string numerics;
    int threads = 0;
};

RecallRun run_recall(const RecallFlags& flags, const RecallCorpus& corpus,
                     model::AttentionMode attention) {
    ModelSettings settings;
    if (!flags.model.empty()) settings.path = flags.model;
    model::EngineOptions options;
    options.threads = flags.threads;
    options.attention = attention;
    const auto engine = model::Engine::load(model_path(settings), options);
    PrefillBar bar(attention == kControl ? "control" : "prefill");
    return {evaluate_recall(*engine, corpus, &bar), engine->numerics_version(), engine->threads()};
}

boost::json::value or_null(const std::optional<double>& value) {
    return value ? boost::json::value(*value) : boost::json::value(nullptr);
}

boost::json::object report_json(const RecallRun& run, const RecallCorpus& corpus,
                                model::AttentionMode attention) {
    const RecallReport& report = run.report;
    boost::json::array layers;
    for (const RecallReport::Layer& layer : report.layers)
        layers.push_back({{"layer", layer.layer},
                          {"matching", layer.matching},
                          {"found", boost::json::array(layer.found.begin(), layer.found.end())}});
    return {{"event", "evaluated"},
            {"attention", model::attention_mode_name(attention)},
            {"recall", report.recall()},
            {"right", report.right},
            {"block_recall", or_null(report.block_recall())},
            {"layers", layers},
            {"prefill_s", report.prefill_seconds},
            {"prefill_tokens_per_s",
             static_cast<double>(corpus.context.size()) / report.prefill_seconds},
            {"questions_s", report.question_seconds},
            {"kv_bytes", report.kv_bytes},
            {"numerics", run.numerics},
            {"threads", run.threads}};
}

void print_report(const RecallRun& run, const RecallCorpus& corpus,
                  model::AttentionMode attention) {
    const RecallReport& report = run.report;
    fmt::print("attention {}{}, {}, {} threads\n", model::attention_mode_name(attention),
               attention == kControl ? " (control)" : "", run.numerics, run.threads);
    fmt::print("  recall        {:.4f}  ({} of {})\n", report.recall(), report.right,
               report.questions);
    for (const RecallReport::Layer& layer : report.layers) {
        fmt::print("  layer {:<3}     {:.4f}  of the answering tokens selected the block{}\n",
                   layer.layer, fmt::join(layer.found, " / "),
                   layer.matching ? "" : " (gathers words, need not)");
    }
    fmt::print("  prefill       {:.2f} s, {:.0f} tokens/s; questions {:.2f} s; KV {:.1f} MB\n",
               report.prefill_seconds,
               static_cast<double>(corpus.context.size()) / report.prefill_seconds,
               report.question_seconds, static_cast<double>(report.kv_bytes) / 1e6);
}

ExitCode recall(const CliContext& context, const RecallFlags& flags) {
    const RecallCorpus corpus = make_recall_corpus(flags.depth, flags.questions, flags.seed);
    if (!context.json)
        fmt::print("{} tokens, {} records, {} questions, seed {}\n", flags.depth, corpus.n_records,
                   flags.questions, flags.seed);
    std::optional<double> recall, control, block_recall;
    for (const auto attention : {model::AttentionMode::model, kControl}) {
        const bool is_control = attention == kControl;
        if (is_control ? flags.no_control : flags.control_only) continue;
        const RecallRun run = run_recall(flags, corpus, attention);
        (is_control ? control : recall) = run.report.recall();
        if (!is_control) block_recall = run.report.block_recall();
        if (context.json)
            print_json(report_json(run, corpus, attention));
        else
            print_report(run, corpus, attention);
    }
    if (context.json)
        print_json({{"depth", flags.depth},
                    {"questions", flags.questions},
                    {"seed", flags.seed},
                    {"records", corpus.n_records},
                    {"corpus_sha256", corpus.digest()},
                    {"recall", or_null(recall)},
                    {"control", or_null(control)},
                    {"block_recall", or_null(block_recall)}});
    return recall && *recall < flags.min_recall ? ExitCode::mismatch : ExitCode::done;
}

}  // namespace

void add_eval_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("eval", "What a model can do: recall");
    app->require_subcommand(1);
    auto flags = std::make_shared<RecallFlags>();
    CLI::App* command = app->add_subcommand(
        "recall",
        "Questions about records of a long log, then the same while attention sees only\n"
        "the last blocks (the control)");
    command->add_option("--model", flags->model, "GGUF file or safetensors folder");
    command
        ->add_option("--depth", flags->depth,
                     "Tokens of log and questions: a number, or 4k, 32k, 128k, 1m")
        ->transform(depth_names())
        ->capture_default_str();
    command->add_option("--seed", flags->seed, "Of the log")->capture_default_str();
    command->add_option("--questions,--queries", flags->questions, "Records asked for")
        ->capture_default_str();
    command->add_option("--threads", flags->threads, "Inference threads (0: all cores)");
    CLI::Option* only = command->add_flag("--control", flags->control_only, "Only the control");
    command->add_flag("--no-control", flags->no_control, "Only the model")->excludes(only);
    command->add_option("--min-recall", flags->min_recall, "Exit with 8 when the model stays below")
        ->capture_default_str();
    on_command(*command, context, [&context, flags] { return recall(context, *flags); });
}

}  // namespace skein::harnesses
