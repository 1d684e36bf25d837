#include "model/sampling/softmax.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "model/cpu/math.h"
#include "model/error.h"

namespace skein::model {

namespace {

constexpr std::size_t kLanes = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

[[noreturn]] void refuse(std::span<const float> logits) {
    // A comparison with NaN is false, so NaN and plus infinity both fail this one.
    const auto broken = std::find_if(logits.begin(), logits.end(),
                                     [](float logit) { return !(logit < kInfinity); });
    if (broken == logits.end()) {
        throw Error(fmt::format("sampling: all {} logits are minus infinity", logits.size()));
    }
    throw Error(fmt::format("sampling: logit {} of {} is {}; expected a finite number",
                            broken - logits.begin(), logits.size(), *broken));
}

}  // namespace

void exp_row(std::span<const float> logits, double max, double scale, std::span<double> out) {
    const float* in = logits.data();
    double* to = out.data();
    for (std::size_t i = 0; i < logits.size(); ++i) {
        to[i] = exp_nonpositive((static_cast<double>(in[i]) - max) * scale);
    }
}

LogSumExp log_sum_exp(std::span<const float> logits) {
    float max = -kInfinity;
    bool finite = true;
    for (const float logit : logits) {
        finite = finite && logit < kInfinity;
        max = logit > max ? logit : max;
    }
    if (!finite || max == -kInfinity) refuse(logits);
    const double top = static_cast<double>(max);
    std::array<double, kLanes> sums{};
    std::array<double, 128 * kLanes> block;
    for (std::size_t begin = 0; begin < logits.size(); begin += block.size()) {
        const auto part = logits.subspan(begin, std::min(block.size(), logits.size() - begin));
        exp_row(part, top, 1.0, std::span(block).first(part.size()));
        for (std::size_t i = 0; i < part.size(); ++i) sums[i % kLanes] += block[i];
    }
    const double low = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const double high = (sums[4] + sums[5]) + (sums[6] + sums[7]);
    return {top, log_f64(low + high)};
}

}  // namespace skein::model
