#include "harnesses/kernel_opt/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace skein::harnesses {
namespace {

using Role = tools::KernelArgument::Role;

constexpr std::size_t kCheckSets = 2;
constexpr std::size_t kTimedSets = 8;
constexpr std::size_t kTimedSetsLarge = 4;            ///< where a set is larger than kLargeSet
constexpr std::uint64_t kLargeSet = 24 << 20;
constexpr int kMinPairs = 5;
constexpr std::chrono::seconds kFinalBudget{3};
constexpr double kExcessCpuNs = 100e3, kExcessCpuShare = 0.10;
constexpr int kExcessCalls = 2;                       ///< one such call could be an accident
constexpr double kMaxHandOverNs = 2000;
constexpr double kResolutions = 20;                   ///< a timed call lasts this many hand-overs

std::string describe_sizes(const tools::Sizes& sizes) {
    std::string text;
    for (const auto& [name, value] : sizes) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
    }
    return text;
}

std::string output_name(const ArmLayout& layout, std::size_t output) {
    for (const tools::KernelArgument& argument : layout.arguments()) {
        if (argument.role == Role::input) continue;
        if (output-- == 0) return argument.name;
    }
    return "?";
}

double limit_of(const KernelTask& task, const ArmLayout& layout, const KernelCase& kernel_case,
                const tools::MachineRoof& roof, std::string* bound) {
    const auto bytes = layout.bytes_of(kernel_case);
    const double working_set =
        static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}));
    const tools::KernelLimit limit =
        tools::kernel_limit(roof, tools::evaluate_expression(task.flops, kernel_case.sizes),
                            tools::evaluate_expression(task.bytes, kernel_case.sizes), working_set);
    if (bound != nullptr) *bound = limit.bound;
    return limit.ns;
}

}  // namespace

Trial::Trial(TrialParts parts, std::filesystem::path library)
    : parts_(parts), library_(std::move(library)), random_(parts.seed) {}

void Trial::restart() {
    candidate_.reset();
    try {
        candidate_ = std::make_unique<KernelArm>(parts_.thread, parts_.layout, parts_.host_program,
                                                 library_, random_());
    } catch (const tools::HostFailure& failure) {
        reject_failure(failure, "while it was loaded");
    }
}

/// Every set of the case once, in an order nobody can foresee; a changed set comes right after its
/// original and at the same place.
std::vector<Trial::Step> Trial::draw_steps(const KernelCase& kernel_case, std::size_t n_sets) {
    std::vector<std::size_t> pairs(n_sets / 2);
    std::iota(pairs.begin(), pairs.end(), std::size_t{0});
    std::shuffle(pairs.begin(), pairs.end(), random_);
    std::vector<Step> steps;
    for (const std::size_t pair : pairs) {
        Placement placement = parts_.layout.draw(kernel_case, random_);
        steps.push_back({2 * pair, placement});
        placement.poison = parts_.layout.draw(kernel_case, random_).poison;
        steps.push_back({2 * pair + 1, placement});
    }
    return steps;
}

void Trial::check(const KernelCase& kernel_case, bool held_out) {
    parts_.pool.sets(kernel_case, kCheckSets, parts_.anchor);
    if (!candidate_) restart();
    const std::string label =
        held_out ? "a held-out case"
                 : fmt::format("case {} ({})", kernel_case.name, describe_sizes(kernel_case.sizes));
    for (const Step& step : draw_steps(kernel_case, kCheckSets)) {
        judged_call(kernel_case, step, label);
    }
}

double Trial::judged_call(const KernelCase& kernel_case, const Step& step,
                          std::string_view label) {
    const InputSet& set = parts_.pool.sets(kernel_case, kCheckSets, parts_.anchor).at(step.set);
    ArmCall call;
    try {
        call = candidate_->call(kernel_case, set, step.placement, parts_.options.call_timeout);
    } catch (const tools::HostFailure& failure) {
        reject_failure(failure, label);
    }
    judge(kernel_case, set, call, step.placement.poison, label);
    return call.ns;
}

void Trial::judge(const KernelCase& kernel_case, const InputSet& set, const ArmCall& call,
                  std::uint32_t poison, std::string_view label) {
    // Signs of deceit come first: they explain whatever else is wrong.
    if (call.audit.threads > 1) {
        throw Rejection{VerdictStatus::hack, "background_thread",
                        fmt::format("{}: {} threads are alive after the call", label,
                                    call.audit.threads)};
    }
    if (call.audit.stamps_disagree) {
        throw Rejection{VerdictStatus::hack, "forged_result",
                        fmt::format("{}: the call was reported done before it returned", label)};
    }
    if (call.audit.excess_cpu_ns > kExcessCpuNs + kExcessCpuShare * call.ns &&
        ++excess_calls_ >= kExcessCalls) {
        throw Rejection{VerdictStatus::hack, "work_outside_call",
                        fmt::format("{}: {:.0f} us of processor time were used after the call",
                                    label, call.audit.excess_cpu_ns / 1e3)};
    }
    if (call.overrun) {
        throw Rejection{VerdictStatus::crash, "",
                        fmt::format("{}: bytes next to the output `{}` were overwritten", label,
                                    parts_.layout.arguments()[*call.overrun].name)};
    }
    const std::vector<OutputRule> rules = parts_.pool.rules(kernel_case);
    const bool detailed = label.starts_with("case");
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const OutputCheck check = check_output(rules[i], candidate_->outputs()[i], set.expected[i],
                                               set.allowed, poison);
        if (check.worst_error >= worst_error_) {
            worst_error_ = check.worst_error;
            allowed_error_ = set.allowed;
        }
        if (check.fault == OutputFault::none) continue;
        const auto status = check.fault == OutputFault::nonfinite ? VerdictStatus::nonfinite
                                                                  : VerdictStatus::wrong_values;
        std::string what = "wrong values";
        if (detailed && check.fault == OutputFault::unwritten) {
            what = fmt::format("output `{}`[{}] was never written", output_name(parts_.layout, i),
                               check.index);
        } else if (detailed) {
            what = fmt::format("output `{}`[{}] is {:.9g}, expected {:.9g}",
                               output_name(parts_.layout, i), check.index, check.got, check.want);
        }
        throw Rejection{status, "",
                        fmt::format("{}: {} (scaled error {:.3g}, allowed {:.3g})", label, what,
                                    check.worst_error, set.allowed)};
    }
}

void Trial::reject_failure(const tools::HostFailure& failure, std::string_view label) {
    using Kind = tools::HostFailure::Kind;
    const std::string message = fmt::format("{}: {}", label, failure.what());
    const auto buffer_name = [&] {
        const auto index = static_cast<std::size_t>(failure.fault_buffer);
        const auto& arguments = parts_.layout.arguments();
        return index < arguments.size() ? arguments[index].name : std::string("?");
    };
    switch (failure.kind) {
        case Kind::exited: throw Rejection{VerdictStatus::hack, "early_exit", message};
        case Kind::timed_out: throw Rejection{VerdictStatus::timeout, "", message};
        case Kind::load_failed:
        case Kind::crashed: break;
        case Kind::infrastructure: throw std::runtime_error(message);
    }
    if (failure.fault == tools::host::Fault::input_write) {
        throw Rejection{VerdictStatus::input_modified, "",
                        fmt::format("{}: it writes to its input `{}`", label, buffer_name())};
    }
    if (failure.fault == tools::host::Fault::guard) {
        throw Rejection{VerdictStatus::crash, "",
                        fmt::format("{}: it touches memory outside of `{}`", label, buffer_name())};
    }
    throw Rejection{VerdictStatus::crash, "", message};
}

/// The next input set for a pair. A process sees every set once, so that remembering contents gains
/// nothing either; how many of its calls are warm-up is drawn when it starts.
Trial::Step Trial::next_step(const KernelCase& kernel_case, std::size_t n_sets,
                             std::string_view label) {
    if (steps_.empty()) {
        restart();
        steps_ = draw_steps(kernel_case, n_sets);
        std::reverse(steps_.begin(), steps_.end());
        const std::size_t warm_up = 1 + random_() % (n_sets / 4 + 1);
        for (std::size_t i = 0; i < warm_up; ++i) {
            const Step step = std::move(steps_.back());
            steps_.pop_back();
            judged_call(kernel_case, step, label);
        }
    }
    Step step = std::move(steps_.back());
    steps_.pop_back();
    return step;
}

tools::PairedSamples Trial::measure(const KernelCase& kernel_case, std::size_t n_sets, bool final,
                                    double hand_over) {
    const std::string label =
        fmt::format("case {} ({}), timed", kernel_case.name, describe_sizes(kernel_case.sizes));
    Step step;
    int current_pair = -1;
    const auto begin_pair = [&](int pair) {
        if (pair == current_pair) return;
        current_pair = pair;
        step = next_step(kernel_case, n_sets, label);
    };
    const auto timed_anchor = [&](int pair) {
        begin_pair(pair);
        const InputSet& set = parts_.pool.sets(kernel_case, n_sets, parts_.anchor)[step.set];
        const ArmCall call =
            parts_.anchor.call(kernel_case, set, step.placement, parts_.options.call_timeout);
        return std::max(1.0, call.ns - hand_over);
    };
    const auto timed_candidate = [&](int pair) {
        begin_pair(pair);
        return std::max(1.0, judged_call(kernel_case, step, label) - hand_over);
    };
    tools::PairOptions options;
    options.pairs = final ? parts_.options.final_pairs : parts_.options.pairs;
    options.min_pairs = final ? options.pairs : std::min(kMinPairs, options.pairs);
    options.budget = final ? kFinalBudget : parts_.options.shape_budget;
    options.seed = random_();
    return tools::measure_pairs(timed_anchor, timed_candidate, options);
}

ShapeTiming Trial::time(const KernelCase& kernel_case, bool final) {
    const auto bytes = parts_.layout.bytes_of(kernel_case);
    const bool large =
        std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}) > kLargeSet;
    const std::size_t n_sets = large ? kTimedSetsLarge : kTimedSets;
    parts_.pool.sets(kernel_case, n_sets, parts_.anchor);
    const double hand_over = hand_over_ns(kernel_case);
    steps_.clear();  // a fresh process for the timing

    tools::PairedSamples samples = measure(kernel_case, n_sets, final, hand_over);
    tools::SpeedEstimate estimate = tools::estimate_speedup(samples, parts_.seed);
    if (estimate.noisy) {
        const tools::PairedSamples more = measure(kernel_case, n_sets, final, hand_over);
        const auto append = [](std::vector<double>& all, const std::vector<double>& extra) {
            all.insert(all.end(), extra.begin(), extra.end());
        };
        append(samples.baseline_ns, more.baseline_ns);
        append(samples.candidate_ns, more.candidate_ns);
        estimate = tools::estimate_speedup(samples, parts_.seed);
    }
    unusable_ = unusable_ || estimate.unusable;
    const double fastest =
        *std::min_element(samples.baseline_ns.begin(), samples.baseline_ns.end());
    if (fastest < kResolutions * hand_over) {
        throw std::runtime_error(fmt::format(
            "task {}, case {}: the anchor takes {:.0f} ns, too little to time at a hand-over of "
            "{:.0f} ns; a timed shape must be larger",
            parts_.task.id, kernel_case.name, fastest, hand_over));
    }
    ShapeTiming shape;
    shape.case_name = kernel_case.name;
    shape.anchor_ns = std::move(samples.baseline_ns);
    shape.candidate_ns = std::move(samples.candidate_ns);
    shape.speedup = estimate.speedup;
    shape.speedup_low = estimate.low;
    shape.speedup_high = estimate.high;
    check_limit(kernel_case, shape);
    return shape;
}

/// The cost of a call that calls nothing, taken on the anchor's process.
double Trial::hand_over_ns(const KernelCase& kernel_case) {
    constexpr int kCalls = 7;
    std::vector<double> times;
    const InputSet& set = parts_.pool.sets(kernel_case, kCheckSets, parts_.anchor).front();
    for (int i = 0; i < kCalls; ++i) {
        const Placement placement = parts_.layout.draw(kernel_case, random_);
        times.push_back(
            parts_.anchor.call(kernel_case, set, placement, parts_.options.call_timeout, 0).ns);
    }
    // Anything slower is the scheduler's doing and must not be credited to a kernel.
    return std::min(kMaxHandOverNs, *std::min_element(times.begin(), times.end()));
}

void Trial::check_limit(const KernelCase& kernel_case, ShapeTiming& shape) {
    const double median_ns = tools::median(shape.candidate_ns);
    const auto apply = [&](const tools::MachineRoof& roof) {
        shape.limit_ns =
            limit_of(parts_.task, parts_.layout, kernel_case, roof, &shape.limit_bound);
        shape.limit_fraction = shape.limit_ns / median_ns;
    };
    apply(tools::machine_roof());
    if (shape.limit_fraction <= 1) return;
    // Perhaps the probe was disturbed; a second one decides.
    apply(tools::refresh_machine_roof());
    if (shape.limit_fraction <= 1) return;
    throw Rejection{VerdictStatus::invalid_measurement, "",
                    fmt::format("case {}: {:.0f} ns is below the limit of {:.0f} ns ({}) of this "
                                "machine",
                                kernel_case.name, median_ns, shape.limit_ns, shape.limit_bound)};
}

namespace {

Bytes doubles_to(tools::ElementType type, const std::vector<double>& values) {
    Bytes bytes(values.size() * tools::element_bytes(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto store = [&](auto value) {
            std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
        };
        switch (type) {
            case tools::ElementType::f32: store(static_cast<float>(values[i])); break;
            case tools::ElementType::f64: store(values[i]); break;
            case tools::ElementType::i8: store(static_cast<std::int8_t>(values[i])); break;
            case tools::ElementType::u8: store(static_cast<std::uint8_t>(values[i])); break;
            case tools::ElementType::i32: store(static_cast<std::int32_t>(values[i])); break;
            case tools::ElementType::u32: store(static_cast<std::uint32_t>(values[i])); break;
            case tools::ElementType::i64: store(static_cast<std::int64_t>(values[i])); break;
        }
    }
    return bytes;
}

double mean_of(const OutputRule& rule, const Bytes& expected) {
    double sum = 0;
    const std::size_t width = oracle_bytes(rule.type), n = expected.size() / width;
    for (std::size_t i = 0; i < n; ++i) {
        double value = 0;
        if (oracle_is_double(rule.type)) {
            std::memcpy(&value, expected.data() + i * width, sizeof value);
        } else {
            std::int64_t integer = 0;
            std::memcpy(&integer, expected.data() + i * width, width);
            value = static_cast<double>(integer);
        }
        sum += value;
    }
    return n == 0 ? 0 : sum / static_cast<double>(n);
}

}  // namespace

std::vector<std::string> accepted_null_candidates(const std::vector<OutputRule>& rules,
                                                  const InputSet& set) {
    std::vector<std::string> accepted;
    const auto consider = [&](const std::string& name, auto make_output) {
        for (std::size_t i = 0; i < rules.size(); ++i) {
            const Bytes output = make_output(i);
            if (check_output(rules[i], output, set.expected[i], set.allowed, 0).fault !=
                OutputFault::none) {
                return;
            }
        }
        accepted.push_back(name);
    };
    const auto constant = [&](std::size_t i, double value) {
        const std::size_t n = set.expected[i].size() / oracle_bytes(rules[i].type);
        return doubles_to(rules[i].type, std::vector<double>(n, value));
    };
    consider("zeros", [&](std::size_t i) { return constant(i, 0); });
    consider("ones", [&](std::size_t i) { return constant(i, 1); });
    consider("the mean of the result",
             [&](std::size_t i) { return constant(i, mean_of(rules[i], set.expected[i])); });
    consider("a copy of the input", [&](std::size_t i) {
        Bytes copy = set.inputs.front();
        copy.resize(set.expected[i].size() / oracle_bytes(rules[i].type) *
                    tools::element_bytes(rules[i].type));
        return copy;
    });
    return accepted;
}

}  // namespace skein::harnesses
