#include "tools/profiler/kernel_timing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

using namespace skein::tools;

namespace {

/// `n` pairs with multiplicative noise on each sample; both arms of a pair share a drift.
PairedSamples simulate(std::size_t n, double ratio, double noise, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, noise);
    PairedSamples samples;
    for (std::size_t i = 0; i < n; ++i) {
        const double drift = std::exp(normal(random) * 5);
        samples.baseline_ns.push_back(1e6 * ratio * drift * std::exp(normal(random)));
        samples.candidate_ns.push_back(1e6 * drift * std::exp(normal(random)));
    }
    return samples;
}

}  // namespace

TEST_SUITE("tools/profiler/kernel_timing") {
    TEST_CASE("kernel_timing: the median of odd and even counts") {
        CHECK(median(std::vector<double>{3, 1, 2}) == 2);
        CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
        CHECK(median(std::vector<double>{7}) == 7);
    }

    TEST_CASE("kernel_timing: recovers a ratio through drift that both arms share") {
        const PairedSamples samples = simulate(25, 3.0, 0.01, 11);
        const SpeedEstimate estimate = estimate_speedup(samples, 1);
        CHECK(estimate.speedup == doctest::Approx(3.0).epsilon(0.05));
        CHECK(estimate.low <= 3.05);
        CHECK(estimate.high >= 2.95);
        CHECK(estimate.low <= estimate.speedup);
        CHECK(estimate.speedup <= estimate.high);
    }

    TEST_CASE("kernel_timing: the interval covers the truth about as often as it says") {
        int covered = 0;
        constexpr int kTrials = 200;
        for (int i = 0; i < kTrials; ++i) {
            const PairedSamples samples =
                simulate(15, 1.0, 0.02, static_cast<std::uint64_t>(1000 + i));
            const SpeedEstimate estimate = estimate_speedup(samples, 5);
            if (estimate.low <= 1.0 && estimate.high >= 1.0) ++covered;
        }
        CHECK(covered >= kTrials * 88 / 100);
    }

    TEST_CASE("kernel_timing: one disturbed sample does not move the median") {
        PairedSamples samples{{100, 100, 100, 100, 100}, {50, 50, 5000, 50, 50}};
        CHECK(estimate_speedup(samples, 1).speedup == doctest::Approx(2.0));
    }

    TEST_CASE("kernel_timing: disagreement between median and minima is noisy and scores lower") {
        PairedSamples samples{{100, 100, 100, 100, 40}, {50, 50, 50, 50, 50}};
        const SpeedEstimate estimate = estimate_speedup(samples, 1);
        CHECK(estimate.noisy);
        CHECK(estimate.unusable);
        CHECK(estimate.speedup == doctest::Approx(0.8));
        CHECK(estimate.low <= estimate.speedup);
    }

    TEST_CASE("kernel_timing: same seed, same estimate") {
        const PairedSamples samples = simulate(9, 2.0, 0.05, 3);
        CHECK(estimate_speedup(samples, 42).low == estimate_speedup(samples, 42).low);
    }

    TEST_CASE("kernel_timing: pairs are taken one of each, in changing order") {
        std::string order;
        PairOptions options;
        options.pairs = 20;
        options.budget = std::chrono::seconds(100);
        const auto call = [&](char arm) {
            return [&order, arm](int) {
                order += arm;
                return arm == 'b' ? 2.0 : 1.0;
            };
        };
        const PairedSamples samples = measure_pairs(call('b'), call('c'), options);
        CHECK(samples.baseline_ns == std::vector<double>(20, 2.0));
        CHECK(samples.candidate_ns == std::vector<double>(20, 1.0));
        CHECK(order.find("bc") != std::string::npos);
        CHECK(order.find("cb") != std::string::npos);
    }

    TEST_CASE("kernel_timing: a spent budget ends after the least number of pairs") {
        PairOptions options;
        options.pairs = 100;
        options.min_pairs = 3;
        options.budget = std::chrono::milliseconds(-1);
        const auto call = [](int) { return 1.0; };
        CHECK(measure_pairs(call, call, options).baseline_ns.size() == 3);
    }
}
