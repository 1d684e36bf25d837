#pragma once
// Compares two kernels by alternating them: pairs in random order, medians of paired ratios.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace skein::tools {

/// Nanoseconds of both arms, element i of each from the same pair, in the order taken.
struct PairedSamples {
    std::vector<double> baseline_ns, candidate_ns;
};

struct PairOptions {
    int pairs = 9;
    int min_pairs = 5;                      ///< taken even when they exceed the budget
    std::chrono::milliseconds budget{400};  ///< of this function; checked after each pair
    std::uint64_t seed = 1;                 ///< of the order within pairs
};

/// One complete timed call for pair `index`; returns its nanoseconds.
using TimedCall = std::function<double(int index)>;

/// Requires: pairs >= 1. Rethrows what a call throws.
PairedSamples measure_pairs(const TimedCall& baseline, const TimedCall& candidate,
                            const PairOptions& options);

struct SpeedEstimate {
    double speedup = 0;          ///< the lower of median paired ratio and ratio of minima if noisy
    double low = 0, high = 0;    ///< 95 % bootstrap interval of the median paired ratio
    double ratio_of_minima = 0;  ///< a cross-check that ignores disturbed samples
    bool noisy = false;          ///< both disagree by more than 10 %, or the interval is wide
    bool unusable = false;       ///< so much that no claim should rest on it
};

/// baseline / candidate. Requires: same size, not empty, all positive. Same seed, same result.
SpeedEstimate estimate_speedup(const PairedSamples& samples, std::uint64_t seed);

/// The middle value, or the mean of the two middle ones. Requires: not empty.
double median(std::span<const double> values);

}  // namespace skein::tools
