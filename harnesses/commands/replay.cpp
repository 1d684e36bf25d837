// skein replay --mode view | playback.

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <cmath>

#include "agent/llm/scripted_model.h"
#include "agent/store/replay.h"
#include "harnesses/cli.h"
#include "harnesses/harness.h"
#include "harnesses/interrupt.h"
#include "harnesses/paths.h"
#include "model/load/model_file.h"

namespace skein::harnesses {
namespace {

namespace store = agent::store;
using Status = store::PlaybackReport::Status;

struct ReplayFlags {
    std::string run, mode = "view", model;
    bool last = false;
};

/// The tokenizer a trajectory was made with: the byte tokenizer for scripts, else the model's file.
std::shared_ptr<const model::Tokenizer> tokenizer_for(const store::StoredTrajectory& trajectory,
                                                      const HarnessConfig& config,
                                                      const ReplayFlags& flags) {
    if (trajectory.record.model.starts_with("scripted")) return agent::make_byte_tokenizer();
    ModelSettings settings;
    if (!config.models.empty()) settings = config.models.begin()->second;
    if (!flags.model.empty()) settings.path = flags.model;
    const auto file = model::open_model_file(model_path(settings));
    return std::make_shared<const model::Tokenizer>(file->vocabulary());
}

std::string text_of(const model::Tokenizer& tokenizer, const store::Runs& runs) {
    std::string text;
    for (const auto& run : runs) text += tokenizer.decode(run.second);
    return model::to_valid_utf8(text);
}

/// The exact log as text: prompts with their control tokens, replies, results.
std::size_t view(const store::Reader& reader, const store::StoredTrajectory& trajectory,
                 const model::Tokenizer& tokenizer, bool json) {
    const auto steps = reader.steps(trajectory.record.uid);
    for (const store::StoredStep& step : steps) {
        const std::string prompt = text_of(tokenizer, step.record.delta);
        const std::string reply = model::to_valid_utf8(tokenizer.decode(step.record.reply.tokens));
        if (json) {
            double logprob = 0;
            for (const float value : step.record.reply.logprobs) {
                if (!std::isnan(value)) logprob += value;  // forced tokens have none
            }
            print_json({{"trajectory", trajectory.record.uid.hex()},
                        {"step", step.record.sequence},
                        {"prompt", prompt},
                        {"reply", reply},
                        {"logprob", logprob},
                        {"tokens", step.record.reply.tokens.size()}});
        } else {
            fmt::print("{}{}{}", prompt, reply, text_of(tokenizer, step.record.closing));
        }
    }
    if (!json) fmt::print("{}\n", text_of(tokenizer, reader.tail(trajectory.record.uid)));
    return steps.size();
}

ExitCode replay(const CliContext& context, const ReplayFlags& flags) {
    const auto directory = find_run(context.run_root, flags.last ? "" : flags.run);
    const store::Reader reader(directory);
    const HarnessConfig config =
        parse_config(reader.run().config, (directory / "skein.db").string(), directory);
    Status status = Status::identical;
    std::size_t steps = 0;
    std::string first;
    const auto trajectories = reader.trajectories();
    for (const store::StoredTrajectory& trajectory : trajectories) {
        const auto tokenizer = tokenizer_for(trajectory, config, flags);
        if (flags.mode == "view") {
            steps += view(reader, trajectory, *tokenizer, context.json);
            continue;
        }
        store::PlaybackReport report;
        auto work = [&]() -> boost::asio::awaitable<void> {
            auto playing = store::playback(reader, trajectory, *tokenizer);
            report = co_await std::move(playing);
        };
        run_interruptible(work());
        steps += report.steps;
        if (context.json) {
            print_json({{"trajectory", trajectory.record.uid.hex()},
                        {"task", trajectory.record.task},
                        {"status", store::to_string(report.status)},
                        {"steps", report.steps},
                        {"tokens", report.tokens}});
        } else {
            fmt::print("{} {:<12} {:>5} steps {:>7} tokens  {}\n",
                       trajectory.record.uid.hex().substr(0, 12), trajectory.record.task,
                       report.steps, report.tokens, store::to_string(report.status));
        }
        if (report.status != Status::identical && first.empty()) {
            status = report.status;
            first = trajectory.record.uid.hex() + ", " + report.first_divergence;
        }
    }
    if (context.json) {
        boost::json::object last{{"mode", flags.mode},
                                 {"status", store::to_string(status)},
                                 {"steps", steps},
                                 {"first_divergence", nullptr}};
        if (!first.empty()) last["first_divergence"] = first;
        print_json(last);
    } else if (flags.mode == "playback") {
        fmt::print("{}: {} steps in {} trajectories{}\n", store::to_string(status), steps,
                   trajectories.size(), first.empty() ? "" : "; first divergence: " + first);
    }
    return status == Status::identical ? ExitCode::done : ExitCode::mismatch;
}

}  // namespace

void add_replay_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand(
        "replay", "Show a stored run token for token, or play it through the agent's loop again");
    auto flags = std::make_shared<ReplayFlags>();
    app->add_option("run", flags->run, "Run: directory, name or unique prefix (default: newest)");
    app->add_flag("--last", flags->last, "The newest run");
    app->add_option(
           "--mode", flags->mode,
           "view: decode the stored ids; playback: recorded tokens and results through the "
           "real loop, compared token for token")
        ->check(CLI::IsMember({"view", "playback"}))
        ->capture_default_str();
    app->add_option("--model", flags->model, "Model file, when it is no longer where it was");
    on_command(*app, context, [&context, flags] { return replay(context, *flags); });
}

}  // namespace skein::harnesses
