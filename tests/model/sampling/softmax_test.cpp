#include "model/sampling/softmax.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "model/error.h"

using namespace skein::model;

TEST_SUITE_BEGIN("model/sampling/softmax");

TEST_CASE("softmax: the exponential agrees with the C library to 1e-14") {
    double worst = 0;
    for (double x = 0; x >= -700; x -= 0.001) {
        worst = std::max(worst, std::abs(exp_nonpositive(x) / std::exp(x) - 1));
    }
    CHECK(worst < 1e-14);
    CHECK(exp_nonpositive(0) == 1.0);
    CHECK(exp_nonpositive(-701) == 0.0);
    CHECK(exp_nonpositive(-std::numeric_limits<double>::infinity()) == 0.0);
}

TEST_CASE("softmax: log sum of exponentials over sizes, large offsets and minus infinity") {
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 5);
    for (std::size_t n : {1, 2, 3, 4, 5, 7, 8, 100, 4099}) {
        for (const float offset : {0.0F, 1e4F, -1e4F}) {
            std::vector<float> logits(n);
            for (float& x : logits) x = normal(random) + offset;
            if (n > 2) logits[1] = -std::numeric_limits<float>::infinity();
            const LogSumExp row = log_sum_exp(logits);
            double sum = 0;
            for (const float x : logits) sum += std::exp(static_cast<double>(x) - row.max);
            CHECK(row.log_sum == doctest::Approx(std::log(sum)).epsilon(1e-12));
        }
    }
}

TEST_CASE("softmax: NaN, plus infinity and a row of minus infinity are refused by index") {
    std::vector<float> logits(10, 1.0F);
    logits[7] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH_AS(log_sum_exp(logits), doctest::Contains("logit 7 of 10 is nan"), Error);
    logits[7] = std::numeric_limits<float>::infinity();
    CHECK_THROWS_WITH_AS(log_sum_exp(logits), doctest::Contains("logit 7 of 10 is inf"), Error);
    logits.assign(10, -std::numeric_limits<float>::infinity());
    CHECK_THROWS_AS(log_sum_exp(logits), Error);
    CHECK_THROWS_AS(log_sum_exp({}), Error);
}

TEST_SUITE_END();
