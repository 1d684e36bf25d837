#include <fmt/format.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <mutex>
#include <optional>
#include <system_error>

#include "sandbox/policy.h"
#include "sandbox/probe.h"
#include "sandbox/run.h"
#include "sandbox/sandbox.h"
#include "sandbox/temporary_directory.h"

namespace skein::sandbox {
namespace {

namespace fs = std::filesystem;
namespace asio = boost::asio;

fs::path find_runner(const fs::path& given) {
    if (!given.empty()) return given;
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    for (const char* place : {".", "../libexec/skein", "libexec/skein", "../../libexec/skein",
                              "../../../libexec/skein"}) {
        const fs::path candidate = here / place / "skein-sandbox-runner";
        std::error_code error;
        if (fs::is_regular_file(candidate, error)) return fs::canonical(candidate);
    }
    throw Error(
        fmt::format("sandbox: no skein-sandbox-runner beside '{}' or in ../libexec/skein; "
                    "install it or set SandboxOptions::runner",
                    here.string()));
}

class LinuxSandbox final : public Sandbox {
  public:
    explicit LinuxSandbox(const SandboxOptions& options)
        : runner_(find_runner(options.runner)), bwrap_(options.bwrap) {}

    const ProbeReport& probe() override {
        std::call_once(probed_, [this] { result_ = probe_machine(runner_, bwrap_); });
        return result_.report;
    }

    asio::awaitable<ProcessResult> run(SandboxPolicy policy, Command command,
                                       ResourceLimits limits) override {
        require(policy.require);
        Plan plan;
        std::string refused;
        Capabilities capabilities = result_.capabilities;
        std::optional<TemporaryDirectory> temporary;
        try {
            if (capabilities.level == Level::landlock)
                capabilities.private_tmp = temporary.emplace().path();
            plan = make_plan(policy, command, limits, capabilities, bwrap_);
        } catch (const std::exception& error) {
            refused = error.what();
        }
        if (!refused.empty()) {
            ProcessResult result;
            result.level = result_.report.level;
            result.detail = refused;
            co_return result;
        }
        auto work = run_plan(runner_, std::move(plan), std::move(command), limits,
                             result_.report.level, std::string());
        co_return co_await std::move(work);
    }

  private:
    void require(Level level) {
        const ProbeReport& report = probe();
        if (report.level >= level && report.level != Level::none) return;
        std::string reasons;
        for (const ProbeLine& line : report.lines)
            if (!line.ok)
                reasons += fmt::format("\n  {}: {}; {}", line.layer, line.detail, line.remedy);
        throw Error(fmt::format("sandbox: level '{}' is required, this machine proves '{}'{}",
                                to_string(level), to_string(report.level), reasons));
    }

    std::string runner_, bwrap_;
    std::once_flag probed_;
    ProbeResult result_;
};

}  // namespace

std::string_view to_string(Level level) {
    constexpr std::array<std::string_view, 4> names{"none", "landlock", "full_noproc", "full"};
    return names.at(static_cast<std::size_t>(level));
}

std::string_view to_string(Outcome outcome) {
    constexpr std::array<std::string_view, 8> names{"exited",        "signalled",    "timed_out",
                                                    "out_of_memory", "output_limit", "disk_limit",
                                                    "killed",        "setup_failed"};
    return names.at(static_cast<std::size_t>(outcome));
}

std::unique_ptr<Sandbox> make_linux_sandbox(SandboxOptions options) {
    return std::make_unique<LinuxSandbox>(options);
}

ProcessResult run_blocking(Sandbox& sandbox, SandboxPolicy policy, Command command,
                           ResourceLimits limits) {
    return complete(sandbox.run(std::move(policy), std::move(command), limits));
}

}  // namespace skein::sandbox
