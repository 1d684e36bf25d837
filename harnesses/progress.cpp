#include "harnesses/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "harnesses/cli.h"
#include "model/text/tokenizer.h"

namespace skein::harnesses {
namespace {

/// What a hostile tool printed must not move the cursor of the person's terminal.
std::string printable(std::string_view bytes) {
    std::string text;
    for (const char c : model::to_valid_utf8(bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7F)
            text += c;
        else if (c == '\n' || c == '\t')
            text += ' ';
        else
            text += fmt::format("\\x{:02x}", byte);
    }
    return text;
}

std::string shortened(std::string text, std::size_t limit) {
    if (text.size() <= limit) return text;
    text.resize(limit);
    return model::to_valid_utf8(text) + "…";
}

}  // namespace

std::string clock_text(double seconds) {
    if (seconds < 0) return "?";
    const auto total = static_cast<long>(seconds);
    return total >= 3600 ? fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60)
                         : fmt::format("{}:{:02}", total / 60, total % 60);
}

ProgressView::ProgressView(bool json) : json_(json), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressView::~ProgressView() {
    if (open_line_) fmt::print(stderr, "\n");
}

void ProgressView::rewrite(const std::string& line) {
    if (terminal_) {
        fmt::print(stderr, "\r\x1b[K{}", shortened(line, 150));
        open_line_ = true;
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

void ProgressView::say(const std::string& line) {
    if (json_) return;
    if (open_line_) fmt::print(stderr, "\n");
    open_line_ = false;
    fmt::print(stderr, "{}\n", line);
}

void ProgressView::kernel(const KernelProgress& p) {
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (json_) {
        print_json({{"event", p.phase},
                    {"task", p.task},
                    {"evaluation", p.evaluations},
                    {"of", p.of},
                    {"best", p.best},
                    {"last", p.last},
                    {"elapsed_s", elapsed},
                    {"left_s", p.seconds_left}});
        return;
    }
    rewrite(fmt::format("[{}] {}/{} {:<10} {:<8} {:>3}/{} best {:.2f}x  {:<22} left {}",
                        clock_text(elapsed), p.task_index + 1, p.n_tasks, p.task, p.phase,
                        p.evaluations, p.of, p.best, p.last, clock_text(p.seconds_left)));
}

void ProgressView::agent(const agent::AgentEvent& event) {
    if (const auto* started = std::get_if<agent::ToolStarted>(&event)) {
        const std::string call = printable(started->call.name + " " + started->call.arguments);
        if (json_)
            print_json({{"event", "tool_started"}, {"call", call}});
        else
            say("  > " + shortened(call, 140));
    } else if (const auto* finished = std::get_if<agent::ToolFinished>(&event)) {
        if (json_) {
            print_json({{"event", "tool_finished"},
                        {"call", printable(finished->call.name)},
                        {"status", tools::to_string(finished->status)},
                        {"seconds", finished->seconds}});
        } else {
            say(fmt::format("  < {} ({:.1f} s) {}", tools::to_string(finished->status),
                            finished->seconds, shortened(printable(finished->shown), 120)));
        }
    } else if (const auto* turn = std::get_if<agent::TurnFinished>(&event)) {
        if (json_) {
            print_json({{"event", "turn"},
                        {"turn", turn->turn},
                        {"prompt_tokens", turn->usage.prompt_tokens},
                        {"sampled_tokens", turn->usage.sampled_tokens}});
        } else {
            say(fmt::format("turn {}: {} tokens read, {} sampled", turn->turn,
                            turn->usage.prompt_tokens, turn->usage.sampled_tokens));
        }
    }
}

}  // namespace skein::harnesses
