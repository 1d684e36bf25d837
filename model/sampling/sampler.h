#pragma once
// Choosing a token from logits, reproducibly. PUBLIC.
//
// The random number of a draw depends only on (seed, position), so a replay, a fork or a rewind
// draws the same token whatever was sampled before. Ties are broken by the lowest id.
//
// Order of the steps: only candidates (a filter or a list) count; logits / temperature; the top_k
// highest; of these the fewest, in descending order, whose probabilities reach top_p; of these the
// ones with at least min_p times the highest probability; one draw from what is left, renormalised.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/sampling/philox.h"
#include "model/token.h"

namespace skein::model {

struct SamplingParams {
    float temperature = 1.0F;  ///< 0 means argmax
    int top_k = 0;             ///< 0 means all
    float top_p = 1.0F;        ///< in (0, 1]
    float min_p = 0.0F;        ///< in [0, 1]
    std::uint64_t seed = 0;
};

struct Sampled {
    Token token = 0;
    float logprob = 0;  ///< log softmax of the *raw* logits (temperature 1, no mask) at `token`
};

/// Whether a token is allowed. May be asked about any token, in any order.
using TokenFilter = std::function<bool(Token)>;

/// Draws one token. `position` is the token's index in its TokenLog.
/// Requires: logits.size() == vocab size. With a filter, only accepted tokens can be drawn and
/// probabilities are renormalised over them. Throws: Error when a logit is NaN, nothing is accepted
/// or a parameter is out of its range.
Sampled sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position,
               const TokenFilter& allowed = {});

/// As `sample` with a filter that accepts exactly `candidates`, at the cost of those tokens only.
/// Requires: ascending ids.
Sampled sample_among(std::span<const float> logits, const SamplingParams& params,
                     std::uint64_t position, std::span<const Token> candidates);

/// log softmax of `logits` at `token`, double accumulation in a fixed order.
/// Throws: Error when a logit is NaN.
float logprob_of(std::span<const float> logits, Token token);

/// A uniform number in [0, 1) with 53 random bits, for (seed, position).
double uniform(std::uint64_t seed, std::uint64_t position);

}  // namespace skein::model
