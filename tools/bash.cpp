#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tools/builtin.h"
#include "tools/function_tool.h"
#include "tools/lines.h"
#include "tools/text.h"

// The command reaches the shell as one argument, untouched: nothing of ours is appended to it, so a
// here-document, a comment or an open quote at its end means what it means in a file. Both streams
// are one, in the order written: an outer shell joins them and becomes the inner one.
// Outcomes stay apart: what the command did, what a limit did, and what the sandbox failed to do.

namespace skein::tools {
namespace {

using sandbox::Outcome;
using sandbox::ProcessResult;

double seconds(std::chrono::microseconds time) {
    return static_cast<double>(time.count()) / 1e6;
}

ToolSpec make_spec(const ShellOptions& options) {
    const double max_seconds = seconds(options.max_timeout);
    ToolSpec spec;
    spec.name = "bash";
    spec.description = fmt::format(
        "Runs a command with bash in a sandbox; standard output and error come back in order, with "
        "the exit code. Each "
        "call is a new shell in the workspace root: cd, variables, functions and background "
        "processes do not outlive "
        "it, files do. Standard input is empty, there is no terminal and no network. The exit code "
        "of a pipe is its "
        "last command's (set -o pipefail changes that). Timeout {:g} s unless given.",
        seconds(options.timeout));
    spec.parameters = {{"type", "object"},
                       {"properties",
                        {{"command", {{"type", "string"}, {"minLength", 1}}},
                         {"timeout",
                          {{"type", "number"},
                           {"minimum", 0.1},
                           {"maximum", max_seconds},
                           {"description", "seconds"}}}}},
                       {"required", {"command"}},
                       {"additionalProperties", false}};
    spec.effect = Effect::write;
    return spec;
}

std::string with_newline(std::string text) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    return text;
}

std::string signal_name(int signal) {
    const char* name = ::sigabbrev_np(signal);
    return name ? fmt::format("{} (SIG{})", signal, name) : std::to_string(signal);
}

// The line that says how the command ended.
std::string ending(const ProcessResult& result, const sandbox::ResourceLimits& limits) {
    const double wall = seconds(result.wall_time);
    switch (result.outcome) {
        case Outcome::exited:
            return fmt::format("exit code {}, {:.2f} s", result.exit_code, wall);
        case Outcome::signalled:
            return fmt::format("ended by signal {}, {:.2f} s", signal_name(result.signal), wall);
        case Outcome::timed_out:
            return fmt::format(
                "timed out after {:g} s; the command and everything it started were killed. Give a "
                "larger "
                "timeout or do less at once",
                seconds(limits.wall_time));
        case Outcome::out_of_memory:
            return fmt::format("killed: it used more than {} MiB of memory",
                               limits.memory_bytes >> 20);
        case Outcome::output_limit:
            return fmt::format("killed: it printed more than {} MiB; write to a file instead",
                               limits.output_bytes >> 20);
        case Outcome::disk_limit:
            return fmt::format("killed: it wrote more than {} MiB to the disk",
                               limits.disk_bytes >> 20);
        case Outcome::killed:
            return "killed: the call was cancelled";
        case Outcome::setup_failed:
            break;
    }
    return "not run";
}

ToolStatus status_of(const ProcessResult& result) {
    switch (result.outcome) {
        case Outcome::timed_out:
            return ToolStatus::timed_out;
        case Outcome::killed:
            return ToolStatus::cancelled;
        case Outcome::setup_failed:
            return ToolStatus::harness_error;
        default:
            return result.ok() ? ToolStatus::ok : ToolStatus::failed;
    }
}

ToolResult harness_error(const std::string& detail) {
    return {ToolStatus::harness_error,
            fmt::format("The command was not run: the sandbox could not be set up. This is a fault "
                        "of the harness, not of "
                        "the command; trying again will not help.\n{}",
                        detail),
            {{"outcome", "setup_failed"}}};
}

ToolResult describe(const ProcessResult& result, const sandbox::ResourceLimits& limits) {
    if (result.outcome == Outcome::setup_failed) return harness_error(result.detail);
    std::string text = with_newline(result.out.text());
    if (result.err.total_bytes > 0) text += "[standard error]\n" + with_newline(result.err.text());
    if (result.out.total_bytes + result.err.total_bytes == 0) text += "[no output]\n";
    if (result.left_processes) text += "[processes it had left running were killed]\n";
    text += fmt::format("[{}]\n", ending(result, limits));
    const std::uint64_t total = result.out.total_bytes + result.err.total_bytes;
    return {status_of(result),
            std::move(text),
            {{"outcome", std::string(to_string(result.outcome))},
             {"exit_code", result.exit_code},
             {"signal", result.signal},
             {"level", std::string(to_string(result.level))},
             {"wall_us", result.wall_time.count()},
             {"cpu_us", result.cpu_time.count()},
             {"peak_rss_bytes", result.peak_rss_bytes},
             {"output_bytes", total},
             {"output_dropped", result.out.dropped + result.err.dropped},
             {"left_processes", result.left_processes}}};
}

class BashTool : public Tool {
  public:
    BashTool(sandbox::Sandbox& sandbox, const Workspace& workspace, ShellOptions options)
        : sandbox_(sandbox),
          workspace_(workspace),
          options_(std::move(options)),
          spec_(make_spec(options_)) {}

    const ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<ToolResult> call(boost::json::object arguments) override {
        const std::string text(string_or(arguments, "command", ""));
        if (text.find('\0') != text.npos) {
            co_return ToolResult{
                ToolStatus::invalid_call, "The command holds a NUL character; it was not run.", {}};
        }
        sandbox::SandboxPolicy policy = options_.policy;
        policy.workspace = workspace_.root();
        sandbox::Command command;
        command.argv = {"bash", "-c", "exec bash -c -- \"$1\" 2>&1", "bash", text};
        command.working_directory =
            policy.workspace_target.empty() ? policy.workspace : policy.workspace_target;
        sandbox::ResourceLimits limits = options_.limits;
        limits.wall_time = std::min(options_.timeout, options_.max_timeout);
        if (const boost::json::value* timeout = arguments.if_contains("timeout")) {
            limits.wall_time =
                std::chrono::milliseconds(std::llround(timeout->to_number<double>() * 1000));
        }
        ToolResult result;
        try {
            auto running = sandbox_.run(std::move(policy), std::move(command), limits);
            const ProcessResult process = co_await std::move(running);
            result = describe(process, limits);
        } catch (const sandbox::Error& error) {
            result = harness_error(error.what());
        }
        co_return result;
    }

  private:
    sandbox::Sandbox& sandbox_;
    const Workspace& workspace_;
    ShellOptions options_;
    ToolSpec spec_;
};

}  // namespace

std::unique_ptr<Tool> make_bash_tool(sandbox::Sandbox& sandbox, const Workspace& workspace,
                                     ShellOptions options) {
    return std::make_unique<BashTool>(sandbox, workspace, std::move(options));
}

}  // namespace skein::tools
