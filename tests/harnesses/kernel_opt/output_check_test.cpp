#include "harnesses/kernel_opt/output_check.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace skein::harnesses;
using skein::tools::ElementType;

namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

OutputCheck check(const std::vector<float>& got, const std::vector<double>& want, double allowed,
                  std::size_t row = 100) {
    const OutputRule rule{ElementType::f32, false, row};
    return check_output(rule, bytes_of(got), bytes_of(want), allowed, kPoisonBase | 7);
}

}  // namespace

TEST_SUITE("harnesses/kernel_opt/output_check") {
    TEST_CASE("output_check: equal values have no error") {
        const OutputCheck result = check({1, 2, 3}, {1, 2, 3}, 0);
        CHECK(result.fault == OutputFault::none);
        CHECK(result.worst_error == 0);
    }

    TEST_CASE("output_check: the error is measured in root mean squares of the oracle's row") {
        const double scale = std::sqrt((9.0 + 16.0) / 2);
        const OutputCheck result = check({3, 4.5F}, {3, 4}, 1);
        CHECK(result.fault == OutputFault::none);
        CHECK(result.worst_error == doctest::Approx(0.5 / scale));
        CHECK(check({3, 4.5F}, {3, 4}, 0.1).fault == OutputFault::wrong);
    }

    TEST_CASE("output_check: a row of tiny results does not accept zeros") {
        CHECK(check({0, 0}, {2.5e-6, 2.4e-6}, 1e-4).fault == OutputFault::wrong);
        CHECK(check({0, 0, 0, 1}, {1e-9, 1e-9, 0, 1}, 1e-4, 2).fault == OutputFault::wrong);
    }

    TEST_CASE("output_check: a row of zeros accepts zeros only") {
        CHECK(check({0, 0}, {0, 0}, 1e-4).fault == OutputFault::none);
        CHECK(check({0, 1e-30F}, {0, 0}, 1e-4).fault == OutputFault::wrong);
    }

    TEST_CASE("output_check: tells an unwritten element from a computed NaN") {
        const std::uint32_t poison = kPoisonBase | 7;
        float unwritten = 0;
        std::memcpy(&unwritten, &poison, sizeof poison);
        CHECK(check({1, unwritten}, {1, 2}, 1).fault == OutputFault::unwritten);
        CHECK(check({1, std::numeric_limits<float>::quiet_NaN()}, {1, 2}, 1).fault ==
              OutputFault::nonfinite);
        CHECK(check({1, std::numeric_limits<float>::infinity()}, {1, 2}, 1).fault ==
              OutputFault::nonfinite);
    }

    TEST_CASE("output_check: NaN and infinity are right where the oracle has them") {
        const float inf = std::numeric_limits<float>::infinity();
        const float nan = std::numeric_limits<float>::quiet_NaN();
        CHECK(check({1, inf, nan}, {1, inf, nan}, 1e-6).fault == OutputFault::none);
        CHECK(check({1, -inf}, {1, inf}, 1e-6).fault != OutputFault::none);
        CHECK(check({1, 5}, {1, nan}, 1e-6).fault == OutputFault::wrong);
    }

    TEST_CASE("output_check: integers and exact floats differ or do not") {
        const OutputRule integers{ElementType::i32, true, 1};
        const auto want = bytes_of(std::vector<std::int32_t>{1, 2, 3});
        CHECK(check_output(integers, want, want, 0, 0).fault == OutputFault::none);
        const auto got = bytes_of(std::vector<std::int32_t>{1, 2, 4});
        const OutputCheck wrong = check_output(integers, got, want, 0, 0);
        CHECK(wrong.fault == OutputFault::wrong);
        CHECK(wrong.index == 2);
        const OutputRule exact{ElementType::f32, true, 4};
        const auto floats = bytes_of(std::vector<float>{0.1F, 0.2F});
        const auto doubles = bytes_of(std::vector<double>{0.1F, 0.2F});
        CHECK(check_output(exact, floats, doubles, 0, 0).fault == OutputFault::none);
        const auto near = bytes_of(std::vector<double>{0.1F, std::nextafter(0.2F, 1.0F)});
        CHECK(check_output(exact, floats, near, 0, 0).fault == OutputFault::wrong);
    }

    TEST_CASE("output_check: refuses an oracle of another size") {
        const OutputRule rule;
        CHECK_THROWS(check_output(rule, bytes_of(std::vector<float>{1}),
                                  bytes_of(std::vector<double>{1, 2}), 1, 0));
    }
}
