#pragma once
// Choosing a token from logits, reproducibly. PUBLIC.
//
// The random number of a draw depends only on (seed, position), so a replay, a fork or a rewind
// draws the same token whatever was sampled before.  Ties are broken by the lowest id.
// Source: Philox4x32-10, Salmon et al. 2011.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/token.h"

namespace skein::model {

struct SamplingParams {
    float temperature = 1.0F;  ///< 0 means argmax
    int top_k = 0;             ///< 0 means all
    float top_p = 1.0F;
    float min_p = 0.0F;
    std::uint64_t seed = 0;
};

struct Sampled {
    Token token = 0;
    float logprob = 0;  ///< log softmax of the *raw* logits (temperature 1, no mask) at `token`
};

/// Whether a token is allowed; called in descending logit order until enough are accepted.
using TokenFilter = std::function<bool(Token)>;

/// Draws one token. `position` is the token's index in its TokenLog.
/// Requires: logits.size() == vocab size. With a filter, only accepted tokens can be drawn and
/// probabilities are renormalised over them. Throws: Error when a logit is NaN or nothing is accepted.
Sampled sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t position,
               const TokenFilter& allowed = {});

/// log softmax of `logits` at `token`, double accumulation in a fixed order.
float logprob_of(std::span<const float> logits, Token token);

/// Four uniform 32-bit words for (seed, counter). Source: Philox4x32-10.
std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t counter);

}  // namespace skein::model
