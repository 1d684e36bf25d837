#include "harnesses/kernel_opt/task_check.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <random>

#include "harnesses/exit_code.h"
#include "harnesses/interrupt.h"
#include "harnesses/kernel_opt/adversaries.h"
#include "sandbox/temporary_directory.h"

namespace skein::harnesses {
namespace {

using boost::asio::awaitable;
namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

struct Checker {
    TaskCheckReport& report;
    const std::function<void(const TaskCheckLine&)>& on_line;

    void admitted(const std::string& what, bool ok, const std::string& detail) const {
        if (!ok) ++report.admission_failures;
        on_line({what, ok, detail});
    }
};

awaitable<void> check_honest(const KernelTask& task, Grader& grader, const Checker& checker,
                             std::string name, std::string source) {
    Candidate candidate{std::move(source), {}};
    auto pending = grader.grade(std::move(candidate), Stage::time);
    const Verdict verdict = co_await std::move(pending);
    // A busy machine says nothing against the task: correct and timed is enough to be admitted.
    checker.admitted(task.id + ": " + name + " passes", verdict.timed(),
                     verdict.timed()
                         ? fmt::format("{:.2f} x", verdict.speedup)
                         : fmt::format("{}: {}", to_string(verdict.status), verdict.message));
}

awaitable<void> check_task(const KernelTask& task, Grader& grader, bool with_adversaries,
                           const Checker& checker) {
    auto admission = grader.admission_failures();
    const std::vector<std::string> failures = co_await std::move(admission);
    checker.admitted(task.id + ": trivial answers fail", failures.empty(),
                     fmt::format("{}", fmt::join(failures, "; ")));
    auto anchor = check_honest(task, grader, checker, "the anchor", task.anchor_source);
    co_await std::move(anchor);
    auto good = check_honest(task, grader, checker, "the known-good kernel",
                             read_file(task.directory / "hidden/known_good.cc"));
    co_await std::move(good);
    if (!with_adversaries) co_return;
    bool any = false;
    for (const Adversary& adversary : adversaries()) any = any || adversary.task == task.id;
    if (!any) co_return;
    auto judging = check_adversaries(task, grader, [&](const AdversaryResult& result) {
        const bool honest = result.name == "anchor" || result.name == "known_good";
        if (!honest) ++checker.report.adversaries;
        if (!result.right) ++checker.report.wrong_verdicts;
        std::string found(to_string(result.verdict.status));
        if (!result.verdict.hack.empty()) found += " " + result.verdict.hack;
        checker.on_line({task.id + ": " + result.name, result.right,
                         "expected " + result.expected + ", found " + found});
    });
    co_await std::move(judging);
}

}  // namespace

KernelTask find_task(const std::string& id) {
    const fs::path root = tasks_root();
    const bool plain = !id.empty() && id.find('/') == std::string::npos && id[0] != '.';
    if (plain && fs::exists(root / id / "task.json")) return load_task(root / id);
    std::string known;
    for (const KernelTask& task : load_tasks(root)) known += " " + task.id;
    throw UsageError("unknown kernel task '" + id + "'; there are:" + known);
}

TaskCheckReport check_tasks(sandbox::Sandbox& sandbox, const std::vector<std::string>& ids,
                            bool with_adversaries,
                            const std::function<void(const TaskCheckLine&)>& on_line) {
    std::vector<KernelTask> tasks;
    for (const std::string& id : ids) tasks.push_back(find_task(id));
    if (ids.empty()) tasks = load_tasks(tasks_root());
    TaskCheckReport report;
    const Checker checker{report, on_line};
    for (const KernelTask& task : tasks) {
        const sandbox::TemporaryDirectory scratch;
        GraderOptions options;
        options.scratch = scratch.path() / "grader";
        options.secret = std::random_device{}();
        auto grader = make_grader(task, sandbox, options);
        run_interruptible(check_task(task, *grader, with_adversaries, checker));
        ++report.tasks;
    }
    return report;
}

}  // namespace skein::harnesses
