#include "harnesses/prefill_bar.h"

#include <doctest/doctest.h>

using namespace skein::harnesses;

TEST_SUITE("harnesses/prefill_bar") {
    TEST_CASE("prefill estimate: knows nothing at first, then the rate, then how it grows") {
        PrefillEstimate estimate;
        CHECK(estimate.seconds_left(100) < 0);
        estimate.add(100, 1.0);
        CHECK(estimate.seconds_left(400) == doctest::Approx(3.0));
        estimate.add(200, 3.0);  // 0.005 n + 0.00005 n^2
        CHECK(estimate.seconds_left(400) == doctest::Approx(0.005 * 400 + 0.00005 * 160000 - 3.0));
        estimate.add(400, 10.0);
        CHECK(estimate.seconds_left(400) == doctest::Approx(0.0));
    }

    TEST_CASE("prefill estimate: a prefill that becomes faster is never estimated below zero") {
        PrefillEstimate estimate;
        estimate.add(100, 5.0);
        estimate.add(200, 6.0);
        CHECK(estimate.seconds_left(1000) == doctest::Approx(6.0 * 4));
    }

    TEST_CASE("prefill line: bar, share, tokens, rate and time left") {
        CHECK(prefill_line("prefill", 512, 1024, 99.6, 65) ==
              "prefill [============            ]  50 %  512 of 1024 tokens  100 tokens/s  left "
              "1:05");
        CHECK(prefill_line("fill", 0, 0, 0, -1).find("100 %") != std::string::npos);
    }
}
