#include "harnesses/cli.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cstdio>

#include "agent/store/error.h"
#include "harnesses/config/config.h"
#include "harnesses/interrupt.h"
#include "harnesses/paths.h"
#include "model/error.h"
#include "sandbox/sandbox.h"

namespace skein::harnesses {
namespace {

/// Every kind of error has one exit code; `main` is the one place that prints an exception.
ExitCode report(const std::exception& error, bool json) {
    ExitCode code = ExitCode::internal_error;
    const char* kind = "internal error";
    if (const auto* interrupted = dynamic_cast<const Interrupted*>(&error)) {
        code = static_cast<ExitCode>(128 + interrupted->signal_number);
        kind = "stopped";
    } else if (dynamic_cast<const UsageError*>(&error) ||
               dynamic_cast<const ConfigError*>(&error)) {
        code = ExitCode::usage_error;
        kind = "error";
    } else if (dynamic_cast<const sandbox::Error*>(&error)) {
        code = ExitCode::infrastructure;
        kind = "sandbox error";
    } else if (dynamic_cast<const model::Error*>(&error)) {
        code = ExitCode::engine_error;
        kind = "model error";
    } else if (dynamic_cast<const agent::store::Divergence*>(&error)) {
        code = ExitCode::mismatch;
        kind = "divergence";
    } else if (dynamic_cast<const agent::store::Error*>(&error)) {
        code = ExitCode::infrastructure;
        kind = "store error";
    }
    fmt::print(stderr, "skein: {}: {}\n", kind, error.what());
    if (json) {
        print_json({{"status", "error"},
                    {"kind", kind},
                    {"message", error.what()},
                    {"exit_code", static_cast<int>(code)}});
    }
    return code;
}

}  // namespace

void print_json(const boost::json::object& object) {
    fmt::print("{}\n", boost::json::serialize(object));
    std::fflush(stdout);
}

CLI::Validator depth_names() {
    return {[](std::string& text) -> std::string {
                const auto unit = text.find_first_not_of("0123456789");
                if (unit == std::string::npos || unit == 0 || unit > 4) return {};
                const std::string name = text.substr(unit);
                const bool kilo = name == "k" || name == "K";
                if (!kilo && name != "m" && name != "M")
                    return "expected a number of tokens, or one with k or m, got " + text;
                text = std::to_string(std::stol(text) << (kilo ? 10U : 20U));
                return {};
            },
            "TOKENS", "depth"};
}

void on_command(CLI::App& app, CliContext& context, std::function<ExitCode()> run) {
    app.add_flag("--json", context.json,
                 "Machine-readable: one JSON object a line, the result last");
    app.callback([&context, run = std::move(run)] { context.selected = run; });
}

int run_cli(int argc, char** argv) {
    CliContext context;
    context.run_root = runs_root();
    for (int i = 0; i < argc; ++i)
        context.command_line += (i == 0 ? "" : " ") + std::string(argv[i]);

    CLI::App app("skein: an agent-harness runtime with an embedded model", "skein");
    app.require_subcommand(1);
    app.set_version_flag("--version", SKEIN_VERSION);
    app.add_option("--runs", context.run_root, "Folder that holds the runs")
        ->envname("SKEIN_RUNS")
        ->capture_default_str();
    app.fallthrough();
    add_run_command(app, context);
    add_resume_command(app, context);
    add_replay_command(app, context);
    add_log_command(app, context);
    add_tasks_command(app, context);
    add_model_command(app, context);
    add_bench_command(app, context);
    add_eval_command(app, context);
    add_doctor_command(app, context);
    add_config_command(app, context);
    app.footer(
        "Exit codes: 0 done, 1 internal error, 2 usage or configuration, 3 task judged failed,\n"
        "4 a budget, 5 stuck, 6 sandbox or tool infrastructure, 7 engine, 8 replay mismatch,\n"
        "124 time limit, 130 interrupted, 143 terminated.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const int code = app.exit(error);
        return code == 0 ? 0 : static_cast<int>(ExitCode::usage_error);
    }
    try {
        return static_cast<int>(context.selected());
    } catch (const std::exception& error) {
        return static_cast<int>(report(error, context.json));
    }
}

}  // namespace skein::harnesses
