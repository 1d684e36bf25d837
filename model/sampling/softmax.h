#pragma once
// The exponentials of the sampler, in double and with our own operations only, so that a logprob or
// a draw has the same bits on every machine.

#include <bit>
#include <cstdint>
#include <span>

namespace skein::model {

/// exp(x) for x <= 0, relative error below 1e-14; exactly 0 below -700, minus infinity included.
/// Straight-line code without divisions, which compilers turn into vector code.
inline double exp_nonpositive(double x) {
    constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    const double clamped = x < -700.0 ? -700.0 : x;
    const double shifted = clamped * 1.44269504088896338700 + kRound;
    const double n = shifted - kRound;
    // ln(2) in two parts; n times the first is exact.
    const double r = (clamped - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 479001600;  // Taylor to r^12 on |r| <= ln(2)/2: the next term is below 2e-16
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // The low bits of `shifted` are n in two's complement: they become the exponent of 2^n.
    const std::uint64_t scale = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
    const double result = p * std::bit_cast<double>(scale);
    return x < -700.0 ? 0.0 : result;
}

/// out[i] = exp((logits[i] - max) * scale). Requires: max >= every logit, scale > 0, equal sizes.
void exp_row(std::span<const float> logits, double max, double scale, std::span<double> out);

/// max and log(sum exp(logit - max)) of a row; log softmax = logit - max - log_sum.
/// Summed in eight interleaved lanes, always in the same order.
/// Throws: Error when a logit is NaN or plus infinity, or all are minus infinity, with its index.
struct LogSumExp {
    double max = 0;
    double log_sum = 0;
};
LogSumExp log_sum_exp(std::span<const float> logits);

}  // namespace skein::model
