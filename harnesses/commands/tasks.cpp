// skein tasks list | show | check: the kernel tasks and the grader's own tests.

#include <fmt/format.h>

#include <algorithm>

#include "harnesses/cli.h"
#include "harnesses/kernel_opt/move_space.h"
#include "harnesses/kernel_opt/task.h"
#include "harnesses/kernel_opt/task_check.h"

namespace skein::harnesses {
namespace {

double points_of(const KernelGenerator* generator) {
    double points = generator == nullptr ? 0 : 1;
    if (generator == nullptr) return points;
    for (const auto& d : generator->dimensions()) points *= static_cast<double>(d.values.size());
    return points;
}

ExitCode list_tasks(const CliContext& context) {
    for (const KernelTask& task : load_tasks(tasks_root())) {
        const KernelGenerator* generator = find_generator(task.id);
        if (context.json) {
            print_json({{"id", task.id},
                        {"version", task.version},
                        {"title", task.title},
                        {"control", task.control},
                        {"points", points_of(generator)}});
        } else {
            fmt::print("{:<11} v{} {:<8} up to {:>6.0f} points  {}\n", task.id, task.version,
                       task.control ? "control" : "", points_of(generator), task.title);
        }
    }
    return ExitCode::done;
}

ExitCode show_task(const CliContext& context, const std::string& id) {
    const KernelTask task = find_task(id);
    const KernelGenerator* generator = find_generator(id);
    if (context.json) {
        print_json({{"id", task.id},
                    {"version", task.version},
                    {"title", task.title},
                    {"flops", task.flops},
                    {"bytes", task.bytes},
                    {"anchor", task.anchor_sha256},
                    {"directory", task.directory.string()}});
        return ExitCode::done;
    }
    fmt::print("{} v{}: {}\n\n{}\n", task.id, task.version, task.title, task.prompt);
    if (generator == nullptr) return ExitCode::done;
    fmt::print("moves:\n");
    for (const Dimension& dimension : generator->dimensions()) {
        fmt::print("  {:<14} {}\n", dimension.name, fmt::join(dimension.values, " "));
        fmt::print("  {:<14} {}\n", "", dimension.help);
    }
    return ExitCode::done;
}

ExitCode check(const CliContext& context, const std::vector<std::string>& ids, bool adversaries) {
    auto sandbox = sandbox::make_linux_sandbox();
    const auto report = check_tasks(*sandbox, ids, adversaries, [&](const TaskCheckLine& line) {
        if (context.json) {
            print_json({{"check", line.what}, {"ok", line.ok}, {"detail", line.detail}});
        } else {
            fmt::print("{} {}{}\n", line.ok ? "ok  " : "FAIL", line.what,
                       line.detail.empty() ? "" : ": " + line.detail);
        }
    });
    if (context.json) {
        print_json({{"tasks", report.tasks},
                    {"adversaries", report.adversaries},
                    {"wrong_verdicts", report.wrong_verdicts},
                    {"admission_failures", report.admission_failures}});
    } else {
        fmt::print("{} tasks, {} adversaries, {} wrong verdicts, {} admission failures\n",
                   report.tasks, report.adversaries, report.wrong_verdicts,
                   report.admission_failures);
    }
    const bool good = report.wrong_verdicts == 0 && report.admission_failures == 0;
    return good ? ExitCode::done : ExitCode::mismatch;
}

}  // namespace

void add_tasks_command(CLI::App& root, CliContext& context) {
    CLI::App* tasks = root.add_subcommand("tasks", "Kernel tasks: list, show, check");
    tasks->require_subcommand(1);
    CLI::App* list = tasks->add_subcommand("list", "All kernel tasks");
    on_command(*list, context, [&context] { return list_tasks(context); });

    auto id = std::make_shared<std::string>();
    CLI::App* show = tasks->add_subcommand("show", "What the agent reads, and the legal moves");
    show->add_option("task", *id, "Task id")->required();
    on_command(*show, context, [&context, id] { return show_task(context, *id); });

    struct Options {
        std::vector<std::string> ids;
        bool skip_adversaries = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* check_app = tasks->add_subcommand(
        "check", "Admit tasks and judge cheating candidates: every verdict must be right");
    check_app->add_option("tasks", options->ids, "Task ids (default: all)");
    check_app->add_flag("--no-adversaries", options->skip_adversaries, "Admission only");
    on_command(*check_app, context, [&context, options] {
        return check(context, options->ids, !options->skip_adversaries);
    });
}

}  // namespace skein::harnesses
