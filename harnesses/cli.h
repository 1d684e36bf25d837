#pragma once
// The command line: one file a command below commands/, one line a command in cli.cpp.

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <filesystem>
#include <functional>
#include <memory>

#include "harnesses/exit_code.h"

namespace skein::harnesses {

/// What every command shares.
struct CliContext {
    bool json = false;                   ///< --json: one object a line, the last is the result
    std::filesystem::path run_root;      ///< --runs
    std::string command_line;            ///< for the record
    std::function<ExitCode()> selected;  ///< set by the subcommand that was named
};

/// Prints one line to stdout.
void print_json(const boost::json::object& object);

/// Lets an option that takes a number of tokens also take "4k", "128k", "1m".
CLI::Validator depth_names();

/// Adds the --json flag and makes `run` what happens when `app` is chosen.
void on_command(CLI::App& app, CliContext& context, std::function<ExitCode()> run);

void add_run_command(CLI::App& root, CliContext& context);
void add_resume_command(CLI::App& root, CliContext& context);
void add_replay_command(CLI::App& root, CliContext& context);
void add_log_command(CLI::App& root, CliContext& context);
void add_tasks_command(CLI::App& root, CliContext& context);
void add_model_command(CLI::App& root, CliContext& context);
void add_bench_command(CLI::App& root, CliContext& context);
void add_eval_command(CLI::App& root, CliContext& context);
void add_doctor_command(CLI::App& root, CliContext& context);
void add_config_command(CLI::App& root, CliContext& context);

/// Parses and runs; prints errors to stderr. Returns the process's exit code.
int run_cli(int argc, char** argv);

}  // namespace skein::harnesses
