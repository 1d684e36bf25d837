#include "model/sampling/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "model/error.h"

using namespace skein::model;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 3);
    std::vector<float> logits(n);
    for (float& x : logits) x = normal(random);
    return logits;
}

/// How often each token is drawn at positions 0..n-1.
std::vector<int> histogram(std::span<const float> logits, const SamplingParams& params, int n,
                           const TokenFilter& allowed = {}) {
    std::vector<int> counts(logits.size());
    for (int i = 0; i < n; ++i) {
        const auto position = static_cast<std::uint64_t>(i);
        ++counts[static_cast<std::size_t>(sample(logits, params, position, allowed).token)];
    }
    return counts;
}

/// The chi-square statistic of counts against probabilities; zero-probability tokens must be
/// unseen.
double chi_square(const std::vector<int>& counts, std::vector<double> weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const int n = std::accumulate(counts.begin(), counts.end(), 0);
    double chi = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double expected = weights[i] / total * n;
        if (weights[i] == 0) {
            CHECK(counts[i] == 0);
        } else {
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
        }
    }
    return chi;
}

}  // namespace

TEST_SUITE_BEGIN("model/sampling/sampler");

TEST_CASE("sampler: temperature 0 is the argmax with the lowest id") {
    const SamplingParams greedy{.temperature = 0};
    CHECK(sample(std::vector<float>{1, 3, 3, 2}, greedy, 0).token == 1);
    CHECK(sample(std::vector<float>{kMinusInfinity, -5}, greedy, 9).token == 1);
    const auto not_one = [](Token t) { return t != 1; };
    CHECK(sample(std::vector<float>{1, 3, 3, 2}, greedy, 0, not_one).token == 2);
}

TEST_CASE("sampler: a draw depends on seed and position only") {
    const auto logits = random_logits(500, 1);
    const SamplingParams params{.seed = 42};
    int differ = 0;
    for (std::uint64_t position = 0; position < 200; ++position) {
        const Token token = sample(logits, params, position).token;
        CHECK(sample(logits, params, position).token == token);
        differ += sample(logits, {.seed = 43}, position).token != token;
    }
    CHECK(differ > 50);
}

TEST_CASE("sampler: frequencies follow the softmax at several temperatures") {
    const std::vector<float> logits{0.5F, -1, 2, kMinusInfinity, 0, 1.5F};
    for (const float temperature : {0.5F, 1.0F, 2.0F}) {
        CAPTURE(temperature);
        std::vector<double> weights;
        for (const float x : logits)
            weights.push_back(std::exp(static_cast<double>(x / temperature)));
        const auto counts = histogram(logits, {.temperature = temperature, .seed = 7}, 20000);
        CHECK(chi_square(counts, weights) < 25);  // 4 degrees of freedom: p = 5e-5
    }
}

TEST_CASE("sampler: with a filter probabilities are renormalised over all accepted tokens") {
    const auto logits = random_logits(40, 2);
    const auto odd = [](Token t) { return t % 2 == 1; };
    std::vector<double> weights;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        weights.push_back(i % 2 == 1 ? std::exp(static_cast<double>(logits[i])) : 0);
    }
    CHECK(chi_square(histogram(logits, {.seed = 3}, 20000, odd), weights) < 55);  // 19 dof, 3e-5
}

TEST_CASE("sampler: a list of candidates draws exactly as the filter that accepts them") {
    const auto logits = random_logits(300, 5);
    std::vector<Token> candidates;
    for (Token t = 3; t < 300; t += 7) candidates.push_back(t);
    const auto filter = [](Token t) { return t >= 3 && (t - 3) % 7 == 0; };
    for (const SamplingParams& params :
         {SamplingParams{.seed = 1}, SamplingParams{.temperature = 0},
          SamplingParams{.temperature = 2, .top_k = 5}, SamplingParams{.top_p = 0.8F},
          SamplingParams{.min_p = 0.1F}}) {
        for (std::uint64_t position = 0; position < 100; ++position) {
            const Sampled a = sample(logits, params, position, filter);
            const Sampled b = sample_among(logits, params, position, candidates);
            CHECK(a.token == b.token);
            CHECK(a.logprob == b.logprob);
        }
    }
}

TEST_CASE("sampler: top_k, top_p and min_p keep exactly the tokens they say") {
    // Probabilities 0.4, 0.3, 0.2, 0.1.
    const std::vector<float> logits{std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};
    const auto kept = [&](const SamplingParams& params) {
        std::vector<Token> tokens;
        const auto counts = histogram(logits, params, 2000);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] > 0) tokens.push_back(static_cast<Token>(i));
        }
        return tokens;
    };
    CHECK(kept({}) == Tokens{0, 1, 2, 3});
    CHECK(kept({.top_k = 1}) == Tokens{1});
    CHECK(kept({.top_k = 3}) == Tokens{1, 2, 3});
    CHECK(kept({.top_p = 0.35F}) == Tokens{1});
    CHECK(kept({.top_p = 0.65F}) == Tokens{1, 3});
    CHECK(kept({.top_p = 0.95F}) == Tokens{0, 1, 2, 3});
    CHECK(kept({.min_p = 0.6F}) == Tokens{1, 3});
    CHECK(kept({.top_k = 3, .top_p = 0.7F}) == Tokens{1, 3});  // 0.7 of 0.9
    CHECK(kept({.top_p = 1e-9F}) == Tokens{1});
}

TEST_CASE("sampler: equal logits at the edge of top_k are kept by lowest id") {
    const std::vector<float> logits(1000, 0.0F);
    for (std::uint64_t position = 0; position < 100; ++position) {
        CHECK(sample(logits, {.top_k = 3}, position).token < 3);
    }
}

TEST_CASE("sampler: logprobs are of the raw logits whatever was filtered") {
    const auto logits = random_logits(1000, 9);
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x));
    for (std::uint64_t position = 0; position < 20; ++position) {
        const Sampled s = sample(logits, {.temperature = 3, .top_k = 7}, position);
        const double x = static_cast<double>(logits[static_cast<std::size_t>(s.token)]);
        CHECK(static_cast<double>(s.logprob) == doctest::Approx(x - std::log(sum)).epsilon(1e-6));
        CHECK(s.logprob == logprob_of(logits, s.token));
    }
}

TEST_CASE("sampler: broken logits, empty sets and parameters out of range are errors") {
    CHECK_THROWS_AS(sample(std::vector<float>{1, kNan}, {}, 0), Error);
    CHECK_THROWS_AS(sample(std::vector<float>{1, 2}, {}, 0, [](Token) { return false; }), Error);
    CHECK_THROWS_AS(sample_among(std::vector<float>{1, 2}, {}, 0, {}), Error);
    const std::vector<Token> impossible{0};
    CHECK_THROWS_AS(sample_among(std::vector<float>{kMinusInfinity, 2}, {}, 0, impossible), Error);
    const std::vector<float> logits{1, 2};
    for (const SamplingParams& params :
         {SamplingParams{.temperature = -1}, SamplingParams{.temperature = kNan},
          SamplingParams{.top_k = -1}, SamplingParams{.top_p = 0}, SamplingParams{.top_p = 1.5F},
          SamplingParams{.min_p = -0.1F}, SamplingParams{.min_p = 2}}) {
        CHECK_THROWS_AS(sample(logits, params, 0), Error);
    }
}

TEST_SUITE_END();
