#pragma once
// What compiler output and machine code say about a kernel, without hardware counters.

#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

/// Static facts of one innermost loop.
struct LoopMix {
    std::string function;
    int depth = 0;         ///< loops around it, itself included; 0: no loop was found
    int instructions = 0;
    int vector_fp = 0, scalar_fp = 0;  ///< arithmetic on packed and on single values
    int fma = 0;                       ///< of those, fused multiply-adds
    int loads = 0, stores = 0;         ///< memory operands
    int stack = 0;                     ///< accesses relative to the stack: spills
    int chains = 0;        ///< different registers that accumulate: each is one dependency chain
    int vector_bits = 0;   ///< widest register used
    int calls = 0;
    std::vector<std::string> listing;  ///< at most kMaxListing instructions
};

inline constexpr std::size_t kMaxListing = 40;

/// The loop of `function` (and what it jumps to inside itself) that probably takes the time: the
/// deepest one, then the one with most floating-point work, then the longest.
/// `disassembly` is `objdump -d --no-show-raw-insn -M intel`.
LoopMix find_hot_loop(std::string_view disassembly, std::string_view function);

/// What the vectoriser said of the given file, each once: loops it vectorised, then why it did not.
/// `output` is gcc's -fopt-info-vec-optimized-missed.
std::vector<std::string> vectoriser_remarks(std::string_view output, std::string_view file,
                                            std::size_t max_lines);

struct RooflineInput {
    double median_ns = 0;
    double memory_ns = 0, arithmetic_ns = 0;  ///< lower bounds; 0: not known
    std::string memory_level;                 ///< "l1" ... "dram"
    double hand_over_ns = 0;                  ///< cost of a call that does nothing
};

/// One of: memory-bound (LEVEL), compute-bound (FMA), latency-bound, overhead-bound, underutilised.
std::string roofline_verdict(const RooflineInput& times, const LoopMix& loop);

/// At most three actions, the one with the largest head-room first, each tied to a fact.
std::vector<std::string> hints_for(const RooflineInput& times, const LoopMix& loop,
                                   const std::vector<std::string>& remarks);

}  // namespace skein::tools
