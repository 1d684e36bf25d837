#pragma once
// What the grader says of a candidate, with its evidence.

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "harnesses/kernel_opt/task.h"

namespace skein::harnesses {

enum class VerdictStatus {
    ok,
    compile_error,
    forbidden,
    crash,
    timeout,
    wrong_values,
    nonfinite,
    input_modified,
    hack,
    invalid_measurement,
    noisy,
    harness_error
};
std::string_view to_string(VerdictStatus status);

/// One timed shape: raw samples of both arms in the order taken, nanoseconds.
struct ShapeTiming {
    std::string case_name;
    std::vector<double> anchor_ns, candidate_ns;
    double speedup = 0, speedup_low = 0,
           speedup_high = 0;    ///< median of paired ratios, 95 % interval
    double limit_ns = 0;        ///< physical lower bound
    std::string limit_bound;    ///< "fma", "l2", "dram" ...
    double limit_fraction = 0;  ///< limit_ns / median candidate
};

struct Verdict {
    VerdictStatus status = VerdictStatus::harness_error;
    std::string hack;     ///< for `hack`: "background_thread", "early_exit", "forged_result" ...
    std::string message;  ///< what the agent may read: first failing case, expected, got
    std::string stage;    ///< where it ended: compile, small, full, time, final
    double speedup = 0, speedup_low = 0, speedup_high = 0;  ///< geometric mean over timed shapes
    double limit_fraction = 0;
    double worst_error = 0, allowed_error = 0;  ///< scaled, see Tolerance
    std::vector<ShapeTiming> shapes;
    std::string candidate_sha256;
    double seconds_compile = 0, seconds_check = 0, seconds_time = 0;
    bool ok() const { return status == VerdictStatus::ok; }
    /// Correct and timed, if only roughly: good enough to guide a search, with its wide interval.
    bool timed() const { return (ok() || status == VerdictStatus::noisy) && speedup > 0; }
};

boost::json::object to_json(const Verdict& verdict, bool with_samples);
Verdict verdict_from_json(const boost::json::object& json);

}  // namespace skein::harnesses
