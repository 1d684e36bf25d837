#include "harnesses/kernel_opt/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace skein::harnesses {
namespace {

std::string escape(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

struct Series {
    const char* name;
    const char* colour;
    const char* dash;
    std::vector<CurvePoint> points;
};

/// Maps data to the drawing area; y is logarithmic, because speedups multiply.
struct Scale {
    double x_max = 1, y_low = 1, y_high = 1;
    static constexpr double kLeft = 46, kTop = 12, kWidth = 470, kHeight = 170;
    double x(double value) const { return kLeft + kWidth * value / x_max; }
    double y(double value) const {
        const double t = std::log(value / y_low) / std::log(y_high / y_low);
        return kTop + kHeight * (1 - std::clamp(t, 0.0, 1.0));
    }
};

std::string path_of(const Series& series, const Scale& scale) {
    std::string path;
    double previous = 0;
    for (const CurvePoint& point : series.points) {
        const double x = scale.x(point.evaluation);
        if (path.empty()) {
            path = fmt::format("M{:.1f} {:.1f}", x, scale.y(point.best));
        } else {
            path += fmt::format(" L{:.1f} {:.1f} L{:.1f} {:.1f}", x, scale.y(previous), x,
                                scale.y(point.best));
        }
        previous = point.best;
    }
    return path;
}

std::string axes(const Scale& scale) {
    std::string svg = fmt::format(
        "<path d='M{0} {1} V{2} H{3}' fill='none' stroke='currentColor' stroke-width='1'/>",
        Scale::kLeft, Scale::kTop, Scale::kTop + Scale::kHeight, Scale::kLeft + Scale::kWidth);
    for (const double tick : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0}) {
        if (tick < scale.y_low || tick > scale.y_high) continue;
        svg += fmt::format(
            "<line x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}' stroke='currentColor' "
            "stroke-opacity='{4}'/><text x='{3}' y='{5:.1f}' text-anchor='end'>{6:g} x</text>",
            Scale::kLeft, Scale::kLeft + Scale::kWidth, scale.y(tick), Scale::kLeft - 6,
            tick == 1.0 ? 0.5 : 0.15, scale.y(tick) + 4, tick);
    }
    const int step = std::max(1, static_cast<int>(std::ceil(scale.x_max / 12)));
    for (int n = step; n <= static_cast<int>(scale.x_max); n += step) {
        svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>", scale.x(n),
                           Scale::kTop + Scale::kHeight + 16, n);
    }
    svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='middle'>evaluations</text>",
                       Scale::kLeft + Scale::kWidth / 2, Scale::kTop + Scale::kHeight + 32);
    return svg;
}

std::string summary_row(const TaskResult& r) {
    return fmt::format(
        "<tr><td><a href='#{0}'>{0}</a>{1}</td><td>{2}</td><td class='n'>{3:.2f} x</td>"
        "<td class='n'>{4:.2f} – {5:.2f}</td><td class='n'>{6}</td><td class='n'>{7:.2f} x</td>"
        "<td class='n'>{8:.0f} %</td><td class='n'>{9} + {10}</td><td>{11}</td></tr>\n",
        escape(r.id), r.control ? " (control)" : "",
        r.improved ? "faster" : (r.winner.timed() ? "no gain" : to_string(r.winner.status)),
        r.winner.speedup, r.winner.speedup_low, r.winner.speedup_high,
        r.random_control ? fmt::format("{:.2f} x", *r.random_control) : "–", r.flags_only,
        100 * r.winner.limit_fraction, r.evaluations, r.control_evaluations,
        escape(r.winner_proposer));
}

std::string task_section(const TaskResult& r) {
    std::string flags;
    for (const std::string& flag : r.winner_flags) flags += " " + flag;
    return fmt::format(
        "<section id='{0}'><h2>{0}</h2>\n{1}\n<p>Winner, proposed by {2}: <code>{3}{4}</code>. "
        "Proposals: {5} by the model, {6} by the search. The anchor against itself: {7:.3f} to "
        "{8:.3f} x.{9}</p>\n<details><summary>The winning kernel</summary>"
        "<pre><code>{10}</code></pre></details></section>\n",
        escape(r.id), curves_svg(r), escape(r.winner_proposer), escape(r.winner_description),
        escape(flags), r.by_model, r.by_search, r.noise_low, r.noise_high,
        r.stopped_by_time ? " The time limit ended the search early." : "",
        escape(r.winner_source));
}

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:#1c2330;background:#fff}"
    "table{border-collapse:collapse;width:100%}th,td{padding:.3rem .6rem;border-bottom:1px solid "
    "#d8dde6;text-align:left}.n{text-align:right;font-variant-numeric:tabular-nums}"
    "svg{font:12px system-ui,sans-serif;fill:currentColor;max-width:100%}"
    "pre{overflow:auto;background:#f4f6f9;padding:1rem;border-radius:6px}"
    "@media(prefers-color-scheme:dark){body{color:#dde3ee;background:#12161d}"
    "th,td{border-color:#313947}pre{background:#1b212b}a{color:#8ab4f8}}";

}  // namespace

std::vector<CurvePoint> best_so_far(const TaskResult& task, Arm arm, std::string_view proposer) {
    std::vector<CurvePoint> points;
    int n = 0;
    double best = 0;
    for (const Evaluation& e : task.history) {
        if (e.arm != arm) continue;
        ++n;
        if (!proposer.empty() && e.proposer != proposer) continue;
        if (!e.verdict.timed() || e.verdict.speedup <= best) continue;
        best = e.verdict.speedup;
        points.push_back({n, best});
    }
    if (!points.empty() && points.back().evaluation != n) points.push_back({n, best});
    return points;
}

std::string curves_svg(const TaskResult& task) {
    std::vector<Series> series = {
        {"model", "#d1495b", "", best_so_far(task, Arm::main, "model")},
        {"search", "#2274a5", "", best_so_far(task, Arm::main, "search")},
        {"edit", "#8b5fbf", "", best_so_far(task, Arm::main, "edit")},
        {"scripted", "#3c8d5a", "", best_so_far(task, Arm::main, "scripted")},
        {"random", "#8a8f98", "5 3", best_so_far(task, Arm::random, "")}};
    Scale scale;
    scale.x_max = std::max({1, task.evaluations, task.control_evaluations});
    scale.y_low = 0.5;
    scale.y_high = 2;
    for (const Series& s : series) {
        for (const CurvePoint& point : s.points) {
            scale.y_low = std::min(scale.y_low, point.best * 0.9);
            scale.y_high = std::max(scale.y_high, point.best * 1.15);
        }
    }
    std::string svg = fmt::format(
        "<svg viewBox='0 0 640 230' role='img'><title>{}: best speedup so far against the number "
        "of "
        "evaluations</title>",
        escape(task.id));
    svg += axes(scale);
    int line = 0;
    for (const Series& s : series) {
        if (s.points.empty()) continue;
        svg += fmt::format(
            "<path d='{}' fill='none' stroke='{}' stroke-width='2' stroke-dasharray='{}'/>",
            path_of(s, scale), s.colour, s.dash);
        const double y = Scale::kTop + 14 + 18 * line++;
        svg += fmt::format(
            "<line x1='540' x2='562' y1='{0:.1f}' y2='{0:.1f}' stroke='{1}' stroke-width='2' "
            "stroke-dasharray='{2}'/><text x='568' y='{3:.1f}'>{4}</text>",
            y, s.colour, s.dash, y + 4, s.name);
    }
    return svg + "</svg>";
}

std::string table_text(const KernelRunResult& result) {
    std::string text =
        fmt::format("{:<11} {:>8} {:>15} {:>9} {:>8} {:>7} {:>6} {:>6}  {}\n", "task", "speedup",
                    "95 % interval", "random", "flags", "limit", "model", "search", "winner");
    for (const TaskResult& r : result.tasks) {
        text +=
            fmt::format("{:<11} {:>7.2f}x {:>15} {:>9} {:>7.2f}x {:>6.0f}% {:>6} {:>6}  {}\n",
                        r.id + (r.control ? "*" : ""), r.winner.speedup,
                        fmt::format("{:.2f} - {:.2f}", r.winner.speedup_low, r.winner.speedup_high),
                        r.random_control ? fmt::format("{:.2f}x", *r.random_control) : "-",
                        r.flags_only, 100 * r.winner.limit_fraction, r.by_model, r.by_search,
                        r.improved ? r.winner_proposer + ": " + r.winner_description
                                   : std::string("no gain beyond the noise"));
    }
    return text + fmt::format("geometric mean over the tasks that are no controls (*): {:.2f}x\n",
                              result.geomean_speedup);
}

std::string report_html(const KernelRunResult& result, const std::vector<std::string>& about) {
    std::string html =
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
        "content='width=device-width'><title>skein kernel optimisation</title><style>";
    html += kStyle;
    html += "</style><h1>Kernel optimisation</h1>\n";
    for (const std::string& line : about) html += "<p>" + escape(line) + "</p>\n";
    html += fmt::format(
        "<p>Geometric mean over the tasks that are no controls: <strong>{:.2f} x</strong> against "
        "the anchors at their own flags. Intervals are 95 %. “Random” is the best of a uniform "
        "control arm with the same number of evaluations, timed again in the same way; “flags” is "
        "the anchor's source with other compiler flags.</p>\n",
        result.geomean_speedup);
    html +=
        "<table><tr><th>task</th><th></th><th class='n'>speedup</th><th class='n'>interval</th>"
        "<th class='n'>random</th><th class='n'>flags</th><th class='n'>of the limit</th>"
        "<th class='n'>evaluations</th><th>winner by</th></tr>\n";
    for (const TaskResult& task : result.tasks) html += summary_row(task);
    html += "</table>\n";
    for (const TaskResult& task : result.tasks) html += task_section(task);
    return html + "</html>\n";
}

}  // namespace skein::harnesses
