// skein log list | show: what is stored.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "agent/store/reader.h"
#include "harnesses/cli.h"
#include "harnesses/paths.h"

namespace skein::harnesses {
namespace {

namespace store = agent::store;

std::string time_text(std::int64_t ms) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(ms / 1000)));
}

ExitCode list_runs(const CliContext& context) {
    const auto directories = run_directories(context.run_root);
    if (!context.json) {
        fmt::print("{:<28} {:<12} {:<20} {:<12} {:>6} {:>9}\n", "run", "harness", "started",
                   "status", "steps", "tokens");
    }
    for (const auto& directory : directories) {
        const std::string name = directory.filename().string();
        try {
            const store::StoredRun run = store::Reader(directory).run();
            if (context.json) {
                print_json({{"run", name},
                            {"harness", run.harness},
                            {"started", run.began_ms},
                            {"status", run.status},
                            {"steps", run.n_steps},
                            {"tokens", run.n_tokens}});
            } else {
                fmt::print("{:<28} {:<12} {:<20} {:<12} {:>6} {:>9}\n", name, run.harness,
                           time_text(run.began_ms), run.status, run.n_steps, run.n_tokens);
            }
        } catch (const store::Error& error) {
            if (context.json) {
                print_json({{"run", name}, {"status", "unreadable"}, {"message", error.what()}});
            } else {
                fmt::print("{:<28} unreadable: {}\n", name, error.what());
            }
        }
    }
    if (directories.empty() && !context.json) {
        fmt::print("no runs below {}\n", context.run_root.string());
    }
    return ExitCode::done;
}

boost::json::object step_json(const store::StoredStep& step) {
    boost::json::array calls;
    for (const store::StoredToolCall& call : step.calls) {
        calls.push_back(
            boost::json::object{{"name", model::to_valid_utf8(call.call.name)},
                                {"arguments", model::to_valid_utf8(call.call.arguments)},
                                {"status", call.status},
                                {"shown", model::to_valid_utf8(call.shown)}});
    }
    boost::json::array said;
    for (const std::string& text : step.record.said) said.emplace_back(model::to_valid_utf8(text));
    return {{"step", step.record.sequence},
            {"said", said},
            {"text", model::to_valid_utf8(step.record.text)},
            {"tokens", step.record.reply.tokens.size()},
            {"finish", agent::to_string(step.record.reply.finish)},
            {"calls", calls}};
}

void print_step(const store::StoredStep& step) {
    for (const std::string& text : step.record.said)
        fmt::print("  user> {}\n", model::to_valid_utf8(text));
    fmt::print("  model[{}, {} tokens, {}]> {}\n", step.record.sequence,
               step.record.reply.tokens.size(), agent::to_string(step.record.reply.finish),
               model::to_valid_utf8(step.record.text));
    for (const store::StoredToolCall& call : step.calls) {
        fmt::print("  {}[{}]> {}\n", model::to_valid_utf8(call.call.name), call.status,
                   model::to_valid_utf8(call.shown));
    }
}

ExitCode show_run(const CliContext& context, const std::string& name, bool verify) {
    const auto directory = find_run(context.run_root, name);
    const store::Reader reader(directory);
    const store::StoredRun run = reader.run();
    if (!context.json) {
        fmt::print("run {}\nharness {}, skein {}, status {}, began {}\ncommand {}\n",
                   directory.filename().string(), run.harness, run.version, run.status,
                   time_text(run.began_ms), run.command);
    }
    for (const store::StoredTrajectory& trajectory : reader.trajectories()) {
        const auto steps = reader.steps(trajectory.record.uid);
        const auto log = reader.token_log(trajectory.record.uid);
        if (!context.json) {
            fmt::print("\ntrajectory {} ({}{}), {}: {} steps, {} tokens, model {}\n",
                       trajectory.record.uid.hex(), trajectory.record.role,
                       trajectory.record.task.empty() ? "" : ", task " + trajectory.record.task,
                       trajectory.status, steps.size(), log.size(), trajectory.record.model);
        }
        for (const store::StoredStep& step : steps) {
            if (context.json) {
                auto json = step_json(step);
                json["trajectory"] = trajectory.record.uid.hex();
                print_json(json);
            } else {
                print_step(step);
            }
        }
    }
    const std::string problem = verify ? reader.verify() : std::string();
    if (context.json) {
        boost::json::object last{{"run", directory.filename().string()},
                                 {"harness", run.harness},
                                 {"status", run.status},
                                 {"started", run.began_ms},
                                 {"steps", run.n_steps},
                                 {"tokens", run.n_tokens}};
        if (verify) last["verify"] = problem.empty() ? "ok" : problem;
        print_json(last);
    } else if (verify) {
        fmt::print("\nverify: {}\n", problem.empty() ? "ok" : problem);
    }
    return problem.empty() ? ExitCode::done : ExitCode::mismatch;
}

}  // namespace

void add_log_command(CLI::App& root, CliContext& context) {
    CLI::App* log = root.add_subcommand("log", "Look at stored runs");
    log->require_subcommand(1);
    CLI::App* list = log->add_subcommand("list", "All runs, oldest first");
    on_command(*list, context, [&context] { return list_runs(context); });

    struct Options {
        std::string run;
        bool last = false, verify = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* show = log->add_subcommand("show", "One run: trajectories, steps, calls");
    show->add_option("run", options->run,
                     "Run: directory, name or unique prefix (default: newest)");
    show->add_flag("--last", options->last, "The newest run");
    show->add_flag("--verify", options->verify, "Check the file, all token hashes and blobs");
    on_command(*show, context, [&context, options] {
        return show_run(context, options->last ? "" : options->run, options->verify);
    });
}

}  // namespace skein::harnesses
