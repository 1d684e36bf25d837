#pragma once
// Admission of tasks and the grader's own tests, as one command: `skein tasks check`.

#include <functional>
#include <string>
#include <vector>

#include "harnesses/kernel_opt/grader.h"
#include "sandbox/sandbox.h"

namespace skein::harnesses {

struct TaskCheckLine {
    std::string what;
    bool ok = false;
    std::string detail;
};

struct TaskCheckReport {
    int tasks = 0, adversaries = 0;
    int wrong_verdicts = 0;      ///< cheats not found, or honest kernels flagged
    int admission_failures = 0;  ///< tasks that would accept an answer which ignores the problem
};

/// Checks the named tasks (all when empty): trivial answers must fail, anchor and known-good kernel
/// must pass, and every cheating candidate must get the right verdict.
/// Throws: UsageError for an unknown task, std::runtime_error when grading fails.
TaskCheckReport check_tasks(sandbox::Sandbox& sandbox, const std::vector<std::string>& ids,
                            bool with_adversaries,
                            const std::function<void(const TaskCheckLine&)>& on_line);

/// The task of this id below tasks_root(). Throws: UsageError that names the tasks there are.
KernelTask find_task(const std::string& id);

}  // namespace skein::harnesses
