#include "harnesses/kernel_opt/grader_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "harnesses/kernel_opt/symbol_rules.h"
#include "harnesses/kernel_opt/trial.h"
#include "tools/profiler/machine_roof.h"
#include "tools/profiler/program_path.h"

namespace skein::harnesses {
namespace {

constexpr std::array<std::string_view, 5> kStages{"compile", "small", "full", "time", "final"};

std::filesystem::path made(std::filesystem::path directory) {
    std::filesystem::create_directories(directory);
    return directory;
}

/// Geometric means over the timed shapes.
void summarise(Verdict& verdict) {
    double speedup = 0, low = 0, high = 0, fraction = 0;
    const double n = static_cast<double>(verdict.shapes.size());
    for (const ShapeTiming& shape : verdict.shapes) {
        speedup += std::log(shape.speedup) / n;
        low += std::log(shape.speedup_low) / n;
        high += std::log(shape.speedup_high) / n;
        fraction += std::log(shape.limit_fraction) / n;
    }
    verdict.speedup = std::exp(speedup);
    verdict.speedup_low = std::exp(low);
    verdict.speedup_high = std::exp(high);
    verdict.limit_fraction = std::exp(fraction);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string_view to_string(Stage stage) {
    return kStages.at(static_cast<std::size_t>(stage));
}

Stage stage_from_string(std::string_view name) {
    const auto found = std::find(kStages.begin(), kStages.end(), name);
    if (found == kStages.end()) throw std::runtime_error(fmt::format("'{}' is not a stage", name));
    return static_cast<Stage>(found - kStages.begin());
}

GraderCore::GraderCore(const KernelTask& task, sandbox::Sandbox& sandbox, GraderOptions options)
    : task_(task),
      options_(std::move(options)),
      host_program_(tools::helper_program("skein-kernel-host")),
      layout_(task),
      thread_(sandbox),
      builder_(sandbox, made(options_.scratch)) {
    const Candidate anchor{task_.anchor_source, {}};
    const tools::BuildResult built = builder_.build(build_request(anchor));
    if (!built.ok) {
        throw std::runtime_error(
            fmt::format("task {}: the anchor does not build:\n{}", task_.id, built.diagnostics));
    }
    anchor_ = std::make_unique<KernelArm>(thread_, layout_, host_program_, built.library,
                                          derive_seed(options_.secret, "anchor", 0));
    pool_ = std::make_unique<CasePool>(task_, layout_, thread_, builder_, host_program_,
                                       options_.secret);
}

GraderCore::~GraderCore() {
    pool_.reset();
    anchor_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(options_.scratch, ignored);
}

tools::BuildRequest GraderCore::build_request(const Candidate& candidate) const {
    tools::BuildRequest request;
    request.files = {{"kernel.cc", candidate.source}, tools::make_entry_shim(task_.signature)};
    request.flags = task_.flags;
    request.flags.insert(request.flags.end(), candidate.flags.begin(), candidate.flags.end());
    request.language_standard = task_.language_standard;
    return request;
}

void GraderCore::check_flags(const Candidate& candidate) const {
    for (const std::string& flag : candidate.flags) {
        if (std::find(task_.allowed_flags.begin(), task_.allowed_flags.end(), flag) ==
            task_.allowed_flags.end()) {
            throw Rejection{VerdictStatus::forbidden, "",
                            fmt::format("the flag {} is not allowed for this task", flag)};
        }
    }
}

std::vector<const KernelCase*> GraderCore::cases(bool timed, bool hidden_too) const {
    std::vector<const KernelCase*> found;
    for (const KernelCase& kernel_case : task_.visible) {
        if (kernel_case.timed == timed) found.push_back(&kernel_case);
    }
    if (!hidden_too) return found;
    for (const KernelCase& kernel_case : task_.hidden) {
        if (kernel_case.timed == timed) found.push_back(&kernel_case);
    }
    return found;
}

Verdict GraderCore::grade(const Candidate& candidate, Stage stage) {
    Verdict verdict;
    verdict.stage = "compile";
    std::string identity = candidate.source;
    for (const std::string& flag : candidate.flags) identity += '\n' + flag;
    verdict.candidate_sha256 = tools::sha256_hex(identity);
    try {
        check_flags(candidate);
        const tools::BuildResult built = builder_.build(build_request(candidate));
        verdict.seconds_compile = built.seconds;
        if (!built.ok) throw Rejection{VerdictStatus::compile_error, "", built.diagnostics};
        if (const auto rejected = check_symbols(built.symbols, task_.forbidden_symbols)) {
            throw Rejection(*rejected);
        }
        verdict.status = VerdictStatus::ok;
        if (stage == Stage::compile) return verdict;
        return run_trial(built, verdict, stage);
    } catch (const Rejection& rejected) {
        verdict.status = rejected.status;
        verdict.hack = rejected.hack;
        verdict.message = rejected.message;
    }
    return verdict;
}

Verdict GraderCore::run_trial(const tools::BuildResult& built, Verdict verdict, Stage stage) {
    TrialParts parts{
        task_,   layout_,       *pool_,   *anchor_,
        thread_, host_program_, options_, derive_seed(options_.secret, "grade", grades_++)};
    Trial trial(parts, built.library);
    auto start = std::chrono::steady_clock::now();
    try {
        verdict.stage = "small";
        for (const KernelCase* kernel_case : cases(false, false)) trial.check(*kernel_case, false);
        verdict.worst_error = trial.worst_error();
        verdict.seconds_check = seconds_since(start);
        if (stage == Stage::small) return verdict;
        verdict.stage = "full";
        for (const KernelCase& kernel_case : task_.hidden) trial.check(kernel_case, true);
        if (stage == Stage::full) {
            for (const KernelCase* timed : cases(true, false)) trial.check(*timed, false);
        }
        verdict.seconds_check = seconds_since(start);
        verdict.worst_error = trial.worst_error();
        verdict.allowed_error = trial.allowed_error();
        if (stage == Stage::full) return verdict;

        verdict.stage = std::string(to_string(stage));
        start = std::chrono::steady_clock::now();
        for (const KernelCase* timed : cases(true, false)) {
            verdict.shapes.push_back(trial.time(*timed, stage == Stage::final));
        }
        verdict.seconds_time = seconds_since(start);
        summarise(verdict);
        if (trial.unusable()) {
            verdict.status = VerdictStatus::noisy;
            verdict.message = "the machine was too busy for a measurement; try again";
        }
    } catch (const Rejection& rejected) {
        verdict.status = rejected.status;
        verdict.hack = rejected.hack;
        verdict.message = rejected.message;
        verdict.shapes.clear();
    }
    verdict.worst_error = trial.worst_error();
    verdict.allowed_error = trial.allowed_error();
    return verdict;
}

void GraderCore::prepare(const std::vector<Candidate>& candidates) {
    constexpr int kParallel = 2;
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kParallel; ++i) {
        threads.emplace_back([&] {
            for (std::size_t at = next++; at < candidates.size(); at = next++) {
                try {
                    check_flags(candidates[at]);
                    builder_.build(build_request(candidates[at]));
                } catch (const Rejection&) {
                    continue;  // grading it says why
                } catch (const std::exception&) {
                    continue;
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

Verdict GraderCore::self_trial() {
    Verdict verdict = grade({task_.anchor_source, {}}, Stage::time);
    verdict.message = "anchor against itself";
    return verdict;
}

std::vector<std::string> GraderCore::admission_failures() {
    // One element or constant inputs cannot tell a mean from the truth; the task as a whole must,
    // and so must every shape that scores.
    std::vector<std::string> failures;
    std::map<std::string, std::size_t> accepted;
    std::size_t n_cases = 0;
    for (const auto* all : {&task_.visible, &task_.hidden}) {
        for (const KernelCase& kernel_case : *all) {
            ++n_cases;
            const InputSet& set = pool_->sets(kernel_case, 2, *anchor_).front();
            for (const std::string& name :
                 accepted_null_candidates(pool_->rules(kernel_case), set)) {
                ++accepted[name];
                if (!kernel_case.timed) continue;
                failures.push_back(
                    fmt::format("{}: timed case {} accepts {}", task_.id, kernel_case.name, name));
            }
        }
    }
    for (const auto& [name, n] : accepted) {
        if (n == n_cases)
            failures.push_back(fmt::format("{}: every case accepts {}", task_.id, name));
    }
    return failures;
}

}  // namespace skein::harnesses
