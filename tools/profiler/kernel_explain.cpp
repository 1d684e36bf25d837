#include "tools/profiler/kernel_explain.h"
#include "tools/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <tuple>

#include "tools/text.h"

namespace skein::tools {
namespace {

constexpr double kNearLimit = 0.6;  ///< at this share of a limit the kernel is bound by it
constexpr int kFewChains = 2;       ///< fewer cannot hide the latency of an addition
constexpr double kHandOvers = 10;   ///< shorter calls mostly measure the calling

struct Instruction {
    std::uint64_t address = 0;
    std::string_view name, operands;
};

struct Loop {
    std::size_t first = 0, last = 0;  ///< indices of its instructions
};

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

bool parse_hex(std::string_view text, std::uint64_t& value) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return result.ec == std::errc{} && result.ptr != text.data();
}

/// The instructions below "<function>:"; optimised clones (".part.0", ".cold") are other functions.
std::vector<Instruction> instructions_of(std::string_view disassembly, std::string_view function) {
    std::vector<Instruction> found;
    bool inside = false;
    const std::string label = fmt::format("<{}>:", function);
    for (std::string_view line : split_lines(disassembly)) {
        if (line.ends_with(">:")) {
            inside = line.ends_with(label);
            continue;
        }
        const std::size_t colon = line.find(":\t");
        if (!inside || colon == std::string_view::npos) continue;
        Instruction instruction;
        if (!parse_hex(trim(line.substr(0, colon)), instruction.address)) continue;
        const std::string_view text = trim(line.substr(colon + 2));
        const std::size_t space = text.find(' ');
        instruction.name = text.substr(0, space);
        if (space != std::string_view::npos) instruction.operands = trim(text.substr(space));
        found.push_back(instruction);
    }
    return found;
}

std::vector<Loop> loops_of(const std::vector<Instruction>& code) {
    std::vector<Loop> loops;
    for (std::size_t i = 0; i < code.size(); ++i) {
        std::uint64_t target = 0;
        if (!code[i].name.starts_with('j') || !parse_hex(code[i].operands, target)) continue;
        if (target > code[i].address) continue;
        const auto first = std::lower_bound(
            code.begin(), code.end(), target,
            [](const Instruction& at, std::uint64_t address) { return at.address < address; });
        if (first == code.end() || first->address != target) continue;
        loops.push_back({static_cast<std::size_t>(first - code.begin()), i});
    }
    return loops;
}

bool contains(const Loop& outer, const Loop& inner) {
    const bool covers = outer.first <= inner.first && inner.last <= outer.last;
    return covers && (outer.first != inner.first || outer.last != inner.last);
}

bool is_arithmetic(std::string_view name) {
    for (const char* part : {"add", "sub", "mul", "div", "fm", "fnm", "max", "min", "sqrt"}) {
        const std::size_t at = name.find(part);
        if (at != std::string_view::npos && at <= 1) return true;
    }
    return false;
}

int register_bits(std::string_view operands) {
    if (operands.find("zmm") != std::string_view::npos) return 512;
    if (operands.find("ymm") != std::string_view::npos) return 256;
    return operands.find("xmm") != std::string_view::npos ? 128 : 0;
}

void count(const Instruction& instruction, LoopMix& mix, std::set<std::string>& accumulators) {
    const std::string_view name = instruction.name, operands = instruction.operands;
    ++mix.instructions;
    const bool vector_name = name.ends_with("ps") || name.ends_with("pd");
    const bool scalar_name = name.ends_with("ss") || name.ends_with("sd");
    const int bits = register_bits(operands);
    if (!scalar_name) mix.vector_bits = std::max(mix.vector_bits, bits);
    if (is_arithmetic(name) && bits > 0 && (vector_name || scalar_name)) {
        vector_name ? ++mix.vector_fp : ++mix.scalar_fp;
        const bool fused = name.find("fmadd") < 3 || name.find("fmsub") < 3 ||
                           name.find("fnmadd") < 3 || name.find("fnmsub") < 3;
        if (fused) ++mix.fma;
        // A destination that is also a source carries its value from one instruction to the next.
        const std::string_view target = operands.substr(0, operands.find(','));
        const bool reused = operands.find(target, target.size()) != std::string_view::npos;
        const bool additive = fused || name.find("add") < 2 || name.find("max") < 2;
        if (additive && (fused || reused)) accumulators.insert(std::string(target));
    }
    const std::size_t bracket = operands.find('[');
    if (bracket != std::string_view::npos && name != "lea" && !name.starts_with("nop")) {
        const bool is_store = bracket < operands.find(',') && name.find("mov") < 2;
        is_store ? ++mix.stores : ++mix.loads;
        if (operands.find("[rsp") != std::string_view::npos ||
            operands.find("[rbp-") != std::string_view::npos) {
            ++mix.stack;
        }
    }
    if (name == "call") ++mix.calls;
}

}  // namespace

LoopMix find_hot_loop(std::string_view disassembly, std::string_view function) {
    const std::vector<Instruction> code = instructions_of(disassembly, function);
    const std::vector<Loop> loops = loops_of(code);
    LoopMix best;
    best.function = std::string(function);
    for (const Loop& loop : loops) {
        const bool innermost = std::none_of(
            loops.begin(), loops.end(), [&](const Loop& other) { return contains(loop, other); });
        if (!innermost) continue;
        LoopMix mix;
        mix.function = std::string(function);
        mix.depth =
            1 + static_cast<int>(std::count_if(loops.begin(), loops.end(), [&](const Loop& other) {
                return contains(other, loop);
            }));
        std::set<std::string> accumulators;
        for (std::size_t i = loop.first; i <= loop.last; ++i) {
            count(code[i], mix, accumulators);
            if (mix.listing.size() < kMaxListing) {
                mix.listing.push_back(fmt::format("{} {}", code[i].name, code[i].operands));
            }
        }
        mix.chains = static_cast<int>(accumulators.size());
        const auto rank = [](const LoopMix& loop_mix) {
            return std::tuple(loop_mix.depth, loop_mix.vector_fp * 8 + loop_mix.scalar_fp,
                              loop_mix.instructions);
        };
        if (rank(mix) > rank(best)) best = std::move(mix);
    }
    return best;
}

std::vector<std::string> vectoriser_remarks(std::string_view output, std::string_view file,
                                            std::size_t max_lines) {
    std::vector<std::string> done, missed;
    std::set<std::string> seen;
    for (std::string_view line : split_lines(output)) {
        if (!line.starts_with(file)) continue;
        const bool optimized = line.find(": optimized: ") != std::string_view::npos;
        const bool reason = line.find("not vectorized: ") != std::string_view::npos;
        if ((!optimized && !reason) || !seen.insert(std::string(line)).second) continue;
        (optimized ? done : missed).emplace_back(line);
    }
    done.insert(done.end(), missed.begin(), missed.end());
    if (done.size() > max_lines) done.resize(max_lines);
    return done;
}

std::string roofline_verdict(const RooflineInput& times, const LoopMix& loop) {
    if (times.hand_over_ns > 0 && times.median_ns < kHandOvers * times.hand_over_ns) {
        return "overhead-bound";
    }
    const double memory = times.memory_ns / times.median_ns;
    const double arithmetic = times.arithmetic_ns / times.median_ns;
    if (std::max(memory, arithmetic) >= kNearLimit) {
        return memory >= arithmetic ? fmt::format("memory-bound ({})", times.memory_level)
                                    : std::string("compute-bound (FMA)");
    }
    const bool accumulates = loop.chains > 0 && loop.vector_fp + loop.scalar_fp > 0;
    if (accumulates && loop.chains <= kFewChains) return "latency-bound";
    return "underutilised";
}

std::vector<std::string> hints_for(const RooflineInput& times, const LoopMix& loop,
                                   const std::vector<std::string>& remarks) {
    std::vector<std::string> hints;
    const double limit = std::max(times.memory_ns, times.arithmetic_ns);
    const double headroom = limit > 0 ? times.median_ns / limit : 0;
    if (headroom > 0 && headroom < 1.25) {
        return {fmt::format("nothing large is left: {:.2f} x above the limit of this machine",
                            headroom)};
    }
    if (loop.scalar_fp > loop.vector_fp) {
        const auto reason = std::find_if(remarks.begin(), remarks.end(), [](const auto& remark) {
            return remark.find("not vectorized: ") != std::string::npos;
        });
        hints.push_back(fmt::format(
            "vectorise the hot loop: {} scalar and {} packed operations{}", loop.scalar_fp,
            loop.vector_fp, reason == remarks.end() ? "" : "; the compiler says: " + *reason));
    }
    if (loop.chains > 0 && loop.chains <= kFewChains) {
        hints.push_back(
            fmt::format("use 4 to 8 independent accumulators: the hot loop has {} "
                        "dependency chain(s), each waits about 4 cycles an addition",
                        loop.chains));
    }
    if (loop.stack > 0) {
        hints.push_back(fmt::format(
            "use fewer registers in the hot loop: {} accesses go to the stack", loop.stack));
    }
    if (loop.calls > 0) {
        hints.push_back(
            fmt::format("inline or replace the {} call(s) in the hot loop", loop.calls));
    }
    if (loop.vector_fp > 0 && loop.vector_bits == 128) {
        hints.emplace_back("use 256-bit vectors: the hot loop has 128-bit ones only");
    }
    if (hints.empty() && times.memory_ns >= times.arithmetic_ns && headroom > 0) {
        hints.push_back(fmt::format("read each byte once and in order: {:.1f} x above the {} limit",
                                    headroom, times.memory_level));
    } else if (hints.empty() && headroom > 0) {
        hints.push_back(
            fmt::format("reuse loaded values in registers (tiling): {} loads for {} "
                        "arithmetic instructions, {:.1f} x above the FMA limit",
                        loop.loads, loop.vector_fp + loop.scalar_fp, headroom));
    }
    if (hints.size() > 3) hints.resize(3);
    return hints;
}

}  // namespace skein::tools
