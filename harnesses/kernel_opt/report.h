#pragma once
// A kernel run as one self-contained page: table, best-so-far plots, the winners' source.

#include <string>

#include "harnesses/kernel_opt/kernel_run.h"

namespace skein::harnesses {

/// Points of a best-so-far curve: x is the evaluation's number within its arm, from 1.
struct CurvePoint {
    int evaluation = 0;
    double best = 0;
};
/// Best speedup so far of one proposer ("model", "search") or of the random arm, one point a change
/// and one at the end. Evaluations of other proposers move x, not the curve.
std::vector<CurvePoint> best_so_far(const TaskResult& task, Arm arm, std::string_view proposer);

/// SVG of the best-so-far curves of model, search and random, with axes, legend and a title for
/// screen readers.
std::string curves_svg(const TaskResult& task);

/// The final table as plain text, one line a task.
std::string table_text(const KernelRunResult& result);

/// `about` are lines for the page's head (run, model, machine, date).
std::string report_html(const KernelRunResult& result, const std::vector<std::string>& about);

}  // namespace skein::harnesses
