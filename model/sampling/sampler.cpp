#include "model/sampling/sampler.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "model/cpu/math.h"
#include "model/error.h"
#include "model/expect.h"
#include "model/sampling/softmax.h"

namespace skein::model {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Candidate {
    Token token;
    float logit;
    double weight;  ///< exp((logit - max) / temperature)
};

/// Higher logit first, then lower id.
bool ranks_before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void check(const SamplingParams& p) {
    const auto refuse = [](const char* name, float value, const char* expected) {
        throw Error(fmt::format("sampling: {} is {}; expected {}", name, value, expected));
    };
    // Written so that NaN fails too.
    if (!(p.temperature >= 0.0F && p.temperature <= 1e6F)) {
        refuse("temperature", p.temperature, "0 (argmax) to 1e6");
    }
    if (!(p.top_p > 0.0F && p.top_p <= 1.0F)) refuse("top_p", p.top_p, "more than 0, at most 1");
    if (!(p.min_p >= 0.0F && p.min_p <= 1.0F)) refuse("min_p", p.min_p, "0 to 1");
    if (p.top_k < 0) throw Error(fmt::format("sampling: top_k is {}; expected 0 or more", p.top_k));
}

/// Leaves what top_k, top_p and min_p keep, in descending order.
void truncate(std::vector<Candidate>& all, const SamplingParams& params) {
    const auto later = [](const Candidate& a, const Candidate& b) { return ranks_before(b, a); };
    const auto n = static_cast<std::ptrdiff_t>(all.size());
    const std::ptrdiff_t k = params.top_k == 0 ? n : std::min<std::ptrdiff_t>(params.top_k, n);
    if (k < n) {
        std::nth_element(all.begin(), all.begin() + k, all.end(), ranks_before);
        all.resize(static_cast<std::size_t>(k));
        // The order inside is the library's choice; sums must not depend on it.
        std::sort(all.begin(), all.end(), ranks_before);
    }
    double total = 0;
    for (const Candidate& c : all) total += c.weight;
    // A heap, because a nucleus is usually a few of many thousands.
    std::make_heap(all.begin(), all.end(), later);
    std::vector<Candidate> kept;
    double reached = 0;
    while (!all.empty()) {
        std::pop_heap(all.begin(), all.end(), later);
        const Candidate next = all.back();
        all.pop_back();
        // The highest has weight 1, so min_p compares weights as it compares probabilities.
        if (!kept.empty() && next.weight < static_cast<double>(params.min_p)) break;
        kept.push_back(next);
        reached += next.weight;
        if (params.top_p < 1.0F && reached >= static_cast<double>(params.top_p) * total) break;
    }
    all = std::move(kept);
}

Token draw(std::vector<Candidate> candidates, const SamplingParams& params, std::uint64_t position) {
    const Candidate best = *std::min_element(candidates.begin(), candidates.end(), ranks_before);
    if (params.temperature == 0.0F) return best.token;
    const double scale = 1.0 / static_cast<double>(params.temperature);
    for (Candidate& c : candidates) {
        c.weight = exp_nonpositive((static_cast<double>(c.logit) - static_cast<double>(best.logit)) *
                                   scale);
    }
    if (params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F) truncate(candidates, params);
    double total = 0;
    for (const Candidate& c : candidates) total += c.weight;
    const double target = uniform(params.seed, position) * total;
    double reached = 0;
    Token last = best.token;
    for (const Candidate& c : candidates) {
        if (c.weight == 0.0) continue;
        last = c.token;
        reached += c.weight;
        if (reached > target) break;
    }
    return last;  // the last one with weight when rounding made the target unreachable
}

Sampled sampled(std::span<const float> logits, const LogSumExp& row, Token token) {
    const double logit = static_cast<double>(logits[static_cast<std::size_t>(token)]);
    return {token, static_cast<float>(logit - row.max - row.log_sum)};
}

Sampled draw_from(std::span<const float> logits, const SamplingParams& params,
                  std::uint64_t position, std::vector<Candidate> candidates, const LogSumExp& row) {
    if (candidates.empty()) {
        throw Error(fmt::format("sampling: none of {} tokens is allowed at position {}",
                                logits.size(), position));
    }
    return sampled(logits, row, draw(std::move(candidates), params, position));
}

}  // namespace

LogSumExp log_sum_exp(std::span<const float> logits) {
    float max = kMinusInfinity;
    std::size_t broken = logits.size();
    for (std::size_t i = 0; i < logits.size(); ++i) {
        // A comparison with NaN is false, so NaN and plus infinity both land here.
        if (!(logits[i] < std::numeric_limits<float>::infinity())) broken = std::min(broken, i);
        max = logits[i] > max ? logits[i] : max;
    }
    if (broken < logits.size()) {
        throw Error(fmt::format("sampling: logit {} of {} is {}; expected a finite number", broken,
                                logits.size(), logits[broken]));
    }
    if (max == kMinusInfinity) {
        throw Error(fmt::format("sampling: all {} logits are minus infinity", logits.size()));
    }
    const double top = static_cast<double>(max);
    double sums[4] = {0, 0, 0, 0};
    const std::size_t whole = logits.size() / 4 * 4;
    for (std::size_t i = 0; i < whole; i += 4) {
        for (std::size_t lane = 0; lane < 4; ++lane) {
            sums[lane] += exp_nonpositive(static_cast<double>(logits[i + lane]) - top);
        }
    }
    for (std::size_t i = whole; i < logits.size(); ++i) {
        sums[i - whole] += exp_nonpositive(static_cast<double>(logits[i]) - top);
    }
    return {top, log_f64((sums[0] + sums[1]) + (sums[2] + sums[3]))};
}

Sampled sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position,
               const TokenFilter& allowed) {
    check(params);
    const LogSumExp row = log_sum_exp(logits);
    std::vector<Candidate> candidates;
    candidates.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
        const auto token = static_cast<Token>(i);
        if (logits[i] == kMinusInfinity || (allowed && !allowed(token))) continue;
        candidates.push_back({token, logits[i], 0});
    }
    return draw_from(logits, params, position, std::move(candidates), row);
}

Sampled sample_among(std::span<const float> logits, const SamplingParams& params,
                     std::uint64_t position, std::span<const Token> candidates) {
    check(params);
    const LogSumExp row = log_sum_exp(logits);
    std::vector<Candidate> chosen;
    chosen.reserve(candidates.size());
    for (const Token token : candidates) {
        const auto i = static_cast<std::size_t>(token);
        expect(i < logits.size(), "a candidate is below the vocabulary size");
        if (logits[i] != kMinusInfinity) chosen.push_back({token, logits[i], 0});
    }
    return draw_from(logits, params, position, std::move(chosen), row);
}

float logprob_of(std::span<const float> logits, Token token) {
    expect(token >= 0 && static_cast<std::size_t>(token) < logits.size(),
           "the token is below the vocabulary size");
    return sampled(logits, log_sum_exp(logits), token).logprob;
}

double uniform(std::uint64_t seed, std::uint64_t position) {
    const auto words = philox(seed, position);
    const std::uint64_t bits = (std::uint64_t{words[0]} << 32) | words[1];
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace skein::model
