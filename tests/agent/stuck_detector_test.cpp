#include "agent/stuck_detector.h"

#include <doctest/doctest.h>

using skein::agent::StuckDetector;

TEST_SUITE("agent/stuck_detector") {
    TEST_CASE("stuck_detector: the same call with the same result counts, anything else resets") {
        StuckDetector detector(3);
        detector.observe_call("ls", "{}", "a");
        detector.observe_call("ls", "{}", "a");
        CHECK_FALSE(detector.stuck());
        detector.observe_call("ls", "{}", "b");
        CHECK(detector.repeats() == 1);
        detector.observe_call("ls", "{}", "b");
        detector.observe_call("ls", "{}", "b");
        CHECK(detector.stuck());
        detector.observe_call("ls", "{\"p\":1}", "b");
        CHECK_FALSE(detector.stuck());
    }

    TEST_CASE("stuck_detector: texts that only join to the same are different") {
        StuckDetector detector(2);
        detector.observe_call("ab", "c", "");
        detector.observe_call("a", "bc", "");
        detector.observe_call("a", "b", "c");
        CHECK_FALSE(detector.stuck());
    }

    TEST_CASE("stuck_detector: turns that run nothing count as one action") {
        StuckDetector detector(2);
        detector.observe_nothing_run();
        CHECK_FALSE(detector.stuck());
        detector.observe_nothing_run();
        CHECK(detector.stuck());
    }

    TEST_CASE("stuck_detector: zero switches it off") {
        StuckDetector detector(0);
        for (int i = 0; i < 100; ++i) detector.observe_nothing_run();
        CHECK_FALSE(detector.stuck());
    }
}
