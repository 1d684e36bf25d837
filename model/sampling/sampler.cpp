#include "model/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "model/error.h"
#include "model/expect.h"
#include "model/sampling/softmax.h"

namespace skein::model {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = 1024;

/// The tokens a draw is among: a list, or the whole vocabulary. Order is by ascending id.
struct Among {
    std::span<const float> logits;
    std::span<const Token> list;
    bool all = false;

    std::size_t size() const { return all ? logits.size() : list.size(); }
    Token token(std::size_t i) const { return all ? static_cast<Token>(i) : list[i]; }
    float logit(std::size_t i) const { return logits[static_cast<std::size_t>(token(i))]; }
};

/// exp((logit - max) / temperature) of up to kBlock tokens, on the stack: a vocabulary of doubles a
/// token would cost more in fresh pages than in arithmetic.
class BlockWeights {
  public:
    BlockWeights(const Among& among, float max, float temperature)
        : among_(among),
          max_(static_cast<double>(max)),
          scale_(1.0 / static_cast<double>(temperature)) {}

    std::span<const double> at(std::size_t begin) {
        const std::size_t n = std::min(kBlock, among_.size() - begin);
        for (std::size_t i = 0; i < n; ++i) logits_[i] = among_.logit(begin + i);
        exp_row(std::span(logits_).first(n), max_, scale_, std::span(weights_).first(n));
        return std::span(weights_).first(n);
    }

  private:
    const Among& among_;
    double max_, scale_;
    std::array<float, kBlock> logits_;
    std::array<double, kBlock> weights_;
};

struct Candidate {
    Token token;
    double weight;
};

/// Higher weight first, then lower id.
bool ranks_before(const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
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

double sum(std::span<const double> values) {
    double total = 0;
    for (const double value : values) total += value;
    return total;
}

/// Draws among all tokens. Sums per block say in which block the drawn one lies.
Token draw_untruncated(const Among& among, const SamplingParams& params, float max, double u) {
    BlockWeights weights(among, max, params.temperature);
    std::vector<double> sums;
    for (std::size_t i = 0; i < among.size(); i += kBlock) sums.push_back(sum(weights.at(i)));
    const double target = u * sum(sums);
    double reached = 0;
    Token last = -1;  // the last one with weight, when rounding made the target unreachable
    for (std::size_t block = 0; block < sums.size(); ++block) {
        const bool is_last = block + 1 == sums.size();
        if (!is_last && reached + sums[block] <= target) {
            reached += sums[block];
            continue;
        }
        const auto row = weights.at(block * kBlock);
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (row[i] == 0.0) continue;
            last = among.token(block * kBlock + i);
            reached += row[i];
            if (reached > target) return last;
        }
    }
    return last;
}

/// What top_k, top_p and min_p keep, in descending order.
std::vector<Candidate> truncated(const Among& among, const SamplingParams& params, float max) {
    BlockWeights weights(among, max, params.temperature);
    double total = 0;
    for (std::size_t i = 0; i < among.size(); i += kBlock) total += sum(weights.at(i));
    // Tokens lighter than (1 - top_p) * total / n have together too little weight for any of them
    // to be reached; half of that leaves room for rounding. The heaviest weight is 1, so min_p
    // compares weights as it compares probabilities.
    double floor = static_cast<double>(params.min_p);
    if (params.top_k == 0) {
        const double left_out = (1.0 - static_cast<double>(params.top_p)) * total;
        floor = std::max(floor, 0.5 * left_out / static_cast<double>(among.size()));
    }
    std::vector<Candidate> all;
    for (std::size_t begin = 0; begin < among.size(); begin += kBlock) {
        const auto row = weights.at(begin);
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (row[i] > 0.0 && (params.top_k > 0 || row[i] >= floor)) {
                all.push_back({among.token(begin + i), row[i]});
            }
        }
    }
    const auto k = static_cast<std::ptrdiff_t>(params.top_k);
    if (k > 0) {
        if (k < static_cast<std::ptrdiff_t>(all.size())) {
            std::nth_element(all.begin(), all.begin() + k, all.end(), ranks_before);
            all.resize(static_cast<std::size_t>(k));
        }
        std::sort(all.begin(), all.end(), ranks_before);
        total = 0;
        for (const Candidate& c : all) total += c.weight;
    }
    // A heap, because a nucleus is usually a few of many thousands.
    const auto later = [](const Candidate& a, const Candidate& b) { return ranks_before(b, a); };
    std::make_heap(all.begin(), all.end(), later);
    std::vector<Candidate> kept;
    double reached = 0;
    while (!all.empty()) {
        std::pop_heap(all.begin(), all.end(), later);
        const Candidate next = all.back();
        all.pop_back();
        if (!kept.empty() && next.weight < static_cast<double>(params.min_p)) break;
        kept.push_back(next);
        reached += next.weight;
        if (params.top_p < 1.0F && reached >= static_cast<double>(params.top_p) * total) break;
    }
    return kept;
}

Token draw_truncated(const Among& among, const SamplingParams& params, float max, double u) {
    const std::vector<Candidate> kept = truncated(among, params, max);
    double total = 0;
    for (const Candidate& c : kept) total += c.weight;
    double reached = 0;
    for (const Candidate& c : kept) {
        reached += c.weight;
        if (reached > u * total) return c.token;
    }
    return kept.back().token;
}

Sampled sampled(std::span<const float> logits, const LogSumExp& row, Token token) {
    const double logit = static_cast<double>(logits[static_cast<std::size_t>(token)]);
    return {token, static_cast<float>(logit - row.max - row.log_sum)};
}

Sampled draw(const Among& among, const SamplingParams& params, std::uint64_t position) {
    const LogSumExp row = log_sum_exp(among.logits);
    float max = kMinusInfinity;
    Token best = -1;
    for (std::size_t i = 0; i < among.size(); ++i) {
        if (among.logit(i) > max) {
            max = among.logit(i);
            best = among.token(i);
        }
    }
    if (best < 0) {
        throw Error(fmt::format("sampling: none of {} tokens is allowed at position {}",
                                among.logits.size(), position));
    }
    if (params.temperature == 0.0F) return sampled(among.logits, row, best);
    const double u = uniform(params.seed, position);
    const bool truncates = params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F;
    const Token token =
        truncates ? draw_truncated(among, params, max, u) : draw_untruncated(among, params, max, u);
    return sampled(among.logits, row, token);
}

}  // namespace

Sampled sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position,
               const TokenFilter& allowed) {
    check(params);
    if (!allowed) return draw({logits, {}, true}, params, position);
    Tokens accepted;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        if (allowed(static_cast<Token>(i))) accepted.push_back(static_cast<Token>(i));
    }
    return draw({logits, accepted, false}, params, position);
}

Sampled sample_among(std::span<const float> logits, const SamplingParams& params,
                     std::uint64_t position, std::span<const Token> candidates) {
    check(params);
    if (!candidates.empty()) {
        expect(
            candidates.front() >= 0 && static_cast<std::size_t>(candidates.back()) < logits.size(),
            "candidates ascend from 0 to below the vocabulary size");
    }
    return draw({logits, candidates, false}, params, position);
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
