// skein config check | show | schema.

#include <fmt/format.h>

#include <algorithm>

#include "harnesses/cli.h"
#include "harnesses/config/config.h"
#include "harnesses/kernel_opt/task_check.h"

namespace skein::harnesses {
namespace {

/// What the file's own text cannot tell: whether the tasks it names exist.
HarnessConfig checked(const std::string& file) {
    HarnessConfig config = load_config(file);
    if (config.kernel_opt) {
        for (const std::string& id : config.kernel_opt->tasks) find_task(id);
    }
    return config;
}

ExitCode check(const CliContext& context, const std::string& file) {
    checked(file);
    if (context.json)
        print_json({{"status", "ok"}, {"file", file}});
    else
        fmt::print("{}: ok\n", file);
    return ExitCode::done;
}

}  // namespace

void add_config_command(CLI::App& root, CliContext& context) {
    CLI::App* app = root.add_subcommand("config", "Configuration files: check, show, schema");
    app->require_subcommand(1);
    auto file = std::make_shared<std::string>();
    CLI::App* check_app =
        app->add_subcommand("check", "Check every key; errors name line and column");
    check_app->add_option("file", *file, "YAML file")->required();
    on_command(*check_app, context, [&context, file] { return check(context, *file); });
    CLI::App* show = app->add_subcommand("show", "The configuration with all defaults filled in");
    show->add_option("file", *file, "YAML file")->required();
    on_command(*show, context, [file] {
        fmt::print("{}", show_config(checked(*file)));
        return ExitCode::done;
    });
    CLI::App* schema = app->add_subcommand("schema", "A JSON Schema for editors");
    on_command(*schema, context, [] {
        fmt::print("{}\n", config_schema());
        return ExitCode::done;
    });
}

}  // namespace skein::harnesses
