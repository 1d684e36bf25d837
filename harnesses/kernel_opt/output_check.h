#pragma once
// Is an output right? Compares with the oracle under the task's tolerance.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/profiler/signature.h"

namespace skein::harnesses {

/// What outputs hold before every call: two of these are a NaN in f32 and in f64.
inline constexpr std::uint32_t kPoisonBase = 0x7ff80000;  ///< the low 16 bits differ a call

struct OutputRule {
    tools::ElementType type = tools::ElementType::f32;
    bool exact = false;
    std::size_t row = 1;  ///< elements that share one scale
};

enum class OutputFault { none, wrong, nonfinite, unwritten };

struct OutputCheck {
    OutputFault fault = OutputFault::none;
    double worst_error = 0;  ///< largest |got - want| / row scale; 0 or 1 for exact outputs
    std::size_t index = 0;   ///< of the first unacceptable element, or of the worst one
    double got = 0, want = 0;
};

/// Is the oracle's version of this output stored as f64?
bool oracle_is_double(tools::ElementType type);
std::size_t oracle_bytes(tools::ElementType type);

/// Shapes: `got` holds elements of rule.type, `want` the oracle's as many. `poison` is the pattern
/// of this call. The row scale is the root mean square of the oracle's row; a row of zeros accepts
/// zeros only. Throws: std::runtime_error when sizes differ.
OutputCheck check_output(const OutputRule& rule, std::span<const std::byte> got,
                         std::span<const std::byte> want, double allowed, std::uint32_t poison);

/// The same error without a verdict: how far `got` is from the oracle at worst.
double scaled_error(const OutputRule& rule, std::span<const std::byte> got,
                    std::span<const std::byte> want);

/// Relative distance of neighbouring values at 1; 0 for integers.
double epsilon_of(tools::ElementType type);

}  // namespace skein::harnesses
