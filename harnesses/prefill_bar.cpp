#include "harnesses/prefill_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "harnesses/progress.h"

namespace skein::harnesses {
namespace {

constexpr double kTerminalPause = 0.1;  // seconds between two states of the bar
constexpr double kLinePause = 10;       // seconds between two lines of a log

}  // namespace

void PrefillEstimate::add(int done, double seconds) {
    points_.push_back({static_cast<double>(done), seconds});
}

double PrefillEstimate::seconds_left(int total) const {
    if (points_.empty()) return -1;
    const Point now = points_.back();
    const auto half = std::find_if(points_.begin(), points_.end(), [&](const Point& point) {
        return point.tokens * 2 >= now.tokens;
    });
    double b = 0;
    if (half->tokens < now.tokens) {
        // now = a n + b n^2 and half = a h + b h^2, solved for b.
        b = (now.seconds / now.tokens - half->seconds / half->tokens) / (now.tokens - half->tokens);
    }
    b = std::max(0.0, b);
    const double a = std::max(0.0, now.seconds / now.tokens - b * now.tokens);
    return a * (total - now.tokens) + b * (1.0 * total * total - now.tokens * now.tokens);
}

std::string prefill_line(const std::string& what, int done, int total, double tokens_per_s,
                         double seconds_left) {
    constexpr int kWidth = 24;
    const double share = total > 0 ? static_cast<double>(done) / total : 1;
    const auto filled = static_cast<std::size_t>(share * kWidth);
    return fmt::format("{} [{:<{}}] {:>3.0f} %  {} of {} tokens  {:.0f} tokens/s  left {}", what,
                       std::string(filled, '='), kWidth, 100 * share, done, total, tokens_per_s,
                       clock_text(seconds_left));
}

PrefillBar::PrefillBar(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) == 1) {}

PrefillBar::~PrefillBar() {
    finish();
}

void PrefillBar::finish() {
    if (open_line_) fmt::print(stderr, "\n");
    open_line_ = false;
}

bool PrefillBar::on_progress(int done, int total) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    estimate_.add(done, seconds);
    const double pause = terminal_ ? kTerminalPause : kLinePause;
    const bool last = done == total && (terminal_ || shown_at_ > 0);
    if (seconds < shown_at_ + pause && !last) return true;
    shown_at_ = seconds;
    const std::string line =
        prefill_line(what_, done, total, done / seconds, estimate_.seconds_left(total));
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", line, terminal_ ? "" : "\n");
    std::fflush(stderr);
    open_line_ = terminal_;
    return true;
}

}  // namespace skein::harnesses
