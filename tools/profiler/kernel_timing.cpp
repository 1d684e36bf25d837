#include "tools/profiler/kernel_timing.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace skein::tools {
namespace {

constexpr int kResamples = 1000;
constexpr double kDisagreement = 0.10;     ///< between median and minima: noisy
constexpr double kWideInterval = 0.25;     ///< half width relative to the median: noisy
constexpr double kUnusable = 0.30;

}  // namespace

double median(std::span<const double> values) {
    std::vector<double> sorted(values.begin(), values.end());
    const std::size_t middle = sorted.size() / 2;
    const auto at = [&](std::size_t index) {
        std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index),
                         sorted.end());
        return sorted[index];
    };
    const double upper = at(middle);
    return sorted.size() % 2 == 1 ? upper : (upper + at(middle - 1)) / 2;
}

PairedSamples measure_pairs(const TimedCall& baseline, const TimedCall& candidate,
                            const PairOptions& options) {
    std::mt19937_64 random(options.seed);
    PairedSamples samples;
    const auto deadline = std::chrono::steady_clock::now() + options.budget;
    for (int i = 0; i < options.pairs; ++i) {
        if (i >= options.min_pairs && std::chrono::steady_clock::now() > deadline) break;
        double baseline_ns = 0, candidate_ns = 0;
        if (random() % 2 == 0) {
            baseline_ns = baseline(i);
            candidate_ns = candidate(i);
        } else {
            candidate_ns = candidate(i);
            baseline_ns = baseline(i);
        }
        samples.baseline_ns.push_back(baseline_ns);
        samples.candidate_ns.push_back(candidate_ns);
    }
    return samples;
}

SpeedEstimate estimate_speedup(const PairedSamples& samples, std::uint64_t seed) {
    const std::size_t n = samples.baseline_ns.size();
    std::vector<double> logs(n);
    for (std::size_t i = 0; i < n; ++i) {
        logs[i] = std::log(samples.baseline_ns[i] / samples.candidate_ns[i]);
    }
    std::mt19937_64 random(seed);
    std::vector<double> resampled(n), medians(kResamples);
    for (double& value : medians) {
        for (double& log : resampled) log = logs[random() % n];
        value = median(resampled);
    }
    std::sort(medians.begin(), medians.end());

    SpeedEstimate estimate;
    estimate.speedup = std::exp(median(logs));
    estimate.low = std::exp(medians[static_cast<std::size_t>(kResamples * 0.025)]);
    estimate.high = std::exp(medians[static_cast<std::size_t>(kResamples * 0.975)]);
    estimate.ratio_of_minima =
        *std::min_element(samples.baseline_ns.begin(), samples.baseline_ns.end()) /
        *std::min_element(samples.candidate_ns.begin(), samples.candidate_ns.end());
    const double disagreement = std::abs(std::log(estimate.ratio_of_minima / estimate.speedup));
    const double half_width = std::log(estimate.high / estimate.low) / 2;
    estimate.noisy = disagreement > kDisagreement || half_width > kWideInterval;
    estimate.unusable = disagreement > kUnusable || half_width > 2 * kWideInterval;
    if (estimate.noisy) estimate.speedup = std::min(estimate.speedup, estimate.ratio_of_minima);
    estimate.low = std::min(estimate.low, estimate.speedup);
    return estimate;
}

}  // namespace skein::tools
