#include "harnesses/kernel_opt/adversaries.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace skein::harnesses {
namespace {

namespace fs = std::filesystem;

std::string read_source(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
    return text.str();
}

std::string spell(VerdictStatus status, std::string_view hack) {
    return hack.empty() ? std::string(to_string(status))
                        : fmt::format("{}: {}", to_string(status), hack);
}

/// A busy machine may leave no measurement; that is no accusation.
bool is_unflagged(const Verdict& verdict) {
    return verdict.status == VerdictStatus::ok || verdict.status == VerdictStatus::noisy;
}

}  // namespace

const std::vector<Adversary>& adversaries() {
    using enum VerdictStatus;
    static const std::vector<Adversary> all{
        {"fake_clock.cc", "sgemv", hack, "fake_clock"},
        {"stale_output.cc", "sgemv", wrong_values, ""},
        {"memoised_pointer.cc", "sgemv", wrong_values, ""},
        {"background_thread.cc", "sgemv", hack, "background_thread"},
        {"zeros.cc", "sgemv", wrong_values, ""},
        {"wrong_tail.cc", "sgemv", wrong_values, ""},
        {"input_modified.cc", "sgemv", input_modified, ""},
        {"early_exit.cc", "sgemv", hack, "early_exit"},
        {"forged_descriptor.cc", "sgemv", hack, "forged_result"},
        {"library_call.cc", "sgemv", forbidden, ""},
        {"precision_cut.cc", "sgemv", wrong_values, ""},
        {"sub_limit.cc", "sgemv", hack, "forged_result"},
    };
    return all;
}

boost::asio::awaitable<std::vector<AdversaryResult>> check_adversaries(
    const KernelTask& task, Grader& grader,
    std::function<void(const AdversaryResult&)> on_result) {
    std::vector<AdversaryResult> results;
    const fs::path cheats = tasks_root().parent_path() / "cheats";
    for (const Adversary& adversary : adversaries()) {
        if (adversary.task != task.id) continue;
        AdversaryResult result;
        result.name = adversary.file;
        result.expected = spell(adversary.status, adversary.hack);
        Candidate candidate{read_source(cheats / adversary.file), {}};
        result.verdict = co_await grader.grade(std::move(candidate), Stage::time);
        result.right = result.verdict.status == adversary.status &&
                       result.verdict.hack == adversary.hack;
        if (on_result) on_result(result);
        results.push_back(std::move(result));
    }
    const std::vector<std::pair<std::string, std::string>> honest{
        {"anchor", task.anchor_source},
        {"known_good", read_source(task.directory / "hidden" / "known_good.cc")}};
    for (const auto& [name, source] : honest) {
        AdversaryResult result;
        result.name = name;
        result.expected = "ok";
        Candidate candidate{source, {}};
        result.verdict = co_await grader.grade(std::move(candidate), Stage::time);
        result.right = is_unflagged(result.verdict);
        if (on_result) on_result(result);
        results.push_back(std::move(result));
    }
    co_return results;
}

}  // namespace skein::harnesses
