#include "model/cpu/math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace skein::model;

TEST_SUITE("model/cpu/math") {
    TEST_CASE("exp of a float is within 2e-7 of the true value where it is defined") {
        double worst = 0;
        for (int i = 0; i < 349990; ++i) {
            const float x = -87.0F + 0.0005F * static_cast<float>(i);
            const double expected = std::exp(static_cast<double>(x));
            worst = std::max(worst, std::fabs(static_cast<double>(exp_f32(x)) / expected - 1.0));
        }
        CHECK(worst < 2e-7);
    }

    TEST_CASE("exp saturates: 1 at zero, 0 far below, finite far above, NaN for NaN") {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        CHECK(exp_f32(0.0F) == 1.0F);
        CHECK(exp_f32(-87.5F) == 0.0F);
        CHECK(exp_f32(-kInfinity) == 0.0F);
        CHECK(exp_f32(1000.0F) == exp_f32(88.0F));
        CHECK(std::isfinite(exp_f32(kInfinity)));
        CHECK(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
    }

    TEST_CASE("silu keeps its sign and its limits") {
        CHECK(silu_f32(0.0F) == 0.0F);
        CHECK(silu_f32(100.0F) == 100.0F);
        CHECK(std::fabs(silu_f32(-200.0F)) < 1e-30F);
        CHECK(silu_f32(1.0F) == doctest::Approx(0.7310586).epsilon(1e-6));
    }

    TEST_CASE("logarithm and exponential of a double agree with each other and with the library") {
        for (const double x : {1e-5, 0.1, 0.5, 1.0, 1.5, 2.0, 1e4, 1e5, 5e6, 1e9}) {
            CAPTURE(x);
            CHECK(log_f64(x) == doctest::Approx(std::log(x)).epsilon(1e-15));
            CHECK(exp_f64(log_f64(x)) == doctest::Approx(x).epsilon(2e-14));
        }
        CHECK(log_f64(1.0) == 0.0);
        CHECK(exp_f64(0.0) == 1.0);
        CHECK(exp_f64(-20.0) == doctest::Approx(std::exp(-20.0)).epsilon(1e-15));
    }

    TEST_CASE("sine and cosine stay exact up to a million radians") {
        double worst = 0;
        for (int i = 0; i < 200000; ++i) {
            const double x = 5.2407 * i - 3.0;
            const SinCos got = sincos_f64(x);
            worst = std::max(
                {worst, std::fabs(got.sin - std::sin(x)), std::fabs(got.cos - std::cos(x))});
        }
        CHECK(worst < 1e-15);
        CHECK(sincos_f64(0.0).sin == 0.0);
        CHECK(sincos_f64(0.0).cos == 1.0);
    }
}
