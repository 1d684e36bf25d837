// The rows of kernel_profile's answer. No number without a unit and something to compare it with.

#include <fmt/format.h>

#include "tools/profiler/profile_run.h"

namespace skein::tools {
namespace {

std::string time_text(double ns) {
    if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
    return fmt::format("{:.2f} ms", ns / 1e6);
}

std::string byte_text(double bytes) {
    if (bytes < 1 << 10) return fmt::format("{:.0f} B", bytes);
    if (bytes < 1 << 20) return fmt::format("{:.1f} KiB", bytes / 1024);
    return fmt::format("{:.1f} MiB", bytes / 1024 / 1024);
}

void add(std::string& text, std::string_view row, const std::string& value) {
    text += fmt::format("{:<13}{}\n", row, value);
}

std::string size_text(const Sizes& sizes) {
    std::string text;
    for (const auto& [name, value] : sizes) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    }
    return text;
}

void add_time(std::string& text, const ProfileRequest& request, const Profile& profile) {
    add(text, "time",
        fmt::format("median {} [quartiles {}, {}], {} samples of {} call(s), {}",
                    time_text(profile.median_ns), time_text(profile.low_ns),
                    time_text(profile.high_ns), profile.samples, profile.repeat,
                    size_text(request.sizes)));
    if (profile.speed) {
        const SpeedEstimate& speed = *profile.speed;
        add(text, "",
            fmt::format("{:.3f} x the speed of {} ({}) [95 %: {:.3f}, {:.3f}]{}", speed.speedup,
                        request.baseline_name, time_text(profile.baseline_ns), speed.low,
                        speed.high, speed.noisy ? ", noisy: repeat before believing it" : ""));
    }
    add(text, "",
        fmt::format("limit {} ({}), reached {:.0f} % of it", time_text(profile.limit.ns),
                    profile.limit.bound, 100 * profile.limit.ns / profile.median_ns));
}

void add_budget(std::string& text, const ProfileRequest& request, const Profile& profile) {
    std::string budget = fmt::format("{} moved ({}), {:.1f} GB/s", byte_text(profile.bytes),
                                     request.bytes.empty() ? "every buffer once" : request.bytes,
                                     profile.bytes / profile.median_ns);
    if (profile.flops > 0) {
        budget += fmt::format("; {:.3g} FLOP, {:.1f} GFLOP/s, {:.2f} FLOP/byte", profile.flops,
                              profile.flops / profile.median_ns, profile.flops / profile.bytes);
    }
    add(text, "budget", budget);
}

void add_evidence(std::string& text, const ProfileRequest& request, const Profile& profile) {
    const LoopMix& loop = profile.loop;
    if (loop.depth == 0) {
        add(text, "evidence",
            "no loop in the entry's own code (inlined elsewhere or straight-line)");
    } else {
        add(text, "evidence",
            fmt::format("hot loop of `{}` (depth {}): {} instructions, {} packed and {} scalar FP, "
                        "{} FMA, {} loads, {} stores",
                        loop.function, loop.depth, loop.instructions, loop.vector_fp,
                        loop.scalar_fp, loop.fma, loop.loads, loop.stores));
    }
    if (!request.baseline.empty()) {
        add(text, "",
            profile.output_difference == 0
                ? std::string("outputs equal the baseline's bit for bit in value")
                : fmt::format("outputs differ from the baseline's by {:.2g} of their root mean "
                              "square at most",
                              profile.output_difference));
    }
    for (const std::string& remark : profile.remarks) add(text, "", remark);
    add(text, "resources",
        fmt::format("widest vector {} bit, {} accumulator(s), {} stack accesses, {} calls in the "
                    "hot loop",
                    loop.vector_bits, loop.chains, loop.stack, loop.calls));
}

void add_difference(std::string& text, const Profile& now, const Profile* before) {
    if (before == nullptr) return add(text, "diff", "first profile of this entry");
    std::string changes;
    const auto changed = [&](const std::string& name, const std::string& from,
                             const std::string& to) {
        if (from == to) return;
        changes += fmt::format("{}{} {} -> {}", changes.empty() ? "" : ", ", name, from, to);
    };
    changed("verdict", before->verdict, now.verdict);
    changed("time", time_text(before->median_ns), time_text(now.median_ns));
    const auto number = [](int value) { return std::to_string(value); };
    changed("packed FP", number(before->loop.vector_fp), number(now.loop.vector_fp));
    changed("scalar FP", number(before->loop.scalar_fp), number(now.loop.scalar_fp));
    changed("FMA", number(before->loop.fma), number(now.loop.fma));
    changed("accumulators", number(before->loop.chains), number(now.loop.chains));
    changed("stack accesses", number(before->loop.stack), number(now.loop.stack));
    changed("vector bits", number(before->loop.vector_bits), number(now.loop.vector_bits));
    add(text, "diff", changes.empty() ? "nothing changed" : changes);
}

constexpr std::size_t kShownInstructions = 24;

}  // namespace

std::string render_profile(const ProfileRequest& request, const Profile& profile,
                           const Profile* previous) {
    std::string text;
    add(text, "verdict", profile.verdict);
    add_time(text, request, profile);
    add_budget(text, request, profile);
    add_evidence(text, request, profile);
    bool first = true;
    for (const std::string& hint : profile.hints) {
        add(text, first ? "hints" : "", hint);
        first = false;
    }
    if (first) add(text, "hints", "none that follows from these facts");
    add(text, "not measured",
        "cache misses, stalls, IPC: no hardware counters are used; the hot loop is a static guess");
    if (profile.flops == 0) {
        add(text, "", "arithmetic limit: give `flops` as an expression over the sizes");
    }
    add_difference(text, profile, previous);
    if (!profile.loop.listing.empty()) {
        add(text, "hot loop", "");
        std::size_t shown = 0;
        for (const std::string& instruction : profile.loop.listing) {
            if (shown++ == kShownInstructions) {
                text += fmt::format("  ... {} more\n", profile.loop.instructions -
                                                           static_cast<int>(kShownInstructions));
                break;
            }
            text += "  " + instruction + "\n";
        }
    }
    return text;
}

}  // namespace skein::tools
