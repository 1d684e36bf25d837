#include "model/cpu/math.h"

namespace skein::model {
namespace {

// ln(2) and pi/2 as sums of parts whose leading ones have trailing zero bits, so that a small
// integer times a leading part is exact (Cody and Waite's argument reduction).
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfPi1 = 1.57079632673412561417e+00;
constexpr double kHalfPi2 = 6.07710050630396597660e-11;
constexpr double kHalfPi3 = 2.02226624879595063154e-21;
constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer

}  // namespace

double log_f64(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<int>((bits >> 52U) & 0x7FFU) - 1023;
    double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
    if (mantissa > 1.4142135623730951) {
        mantissa *= 0.5;
        ++exponent;
    }
    // log(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716: 13 terms reach 1e-21.
    const double s = (mantissa - 1.0) / (mantissa + 1.0);
    const double s2 = s * s;
    double series = 0.0;
    for (int k = 12; k >= 1; --k) series = (series + 1.0 / (2 * k + 1)) * s2;
    return exponent * kLn2High + (2.0 * (s + s * series) + exponent * kLn2Low);
}

double exp_f64(double x) {
    const double n = (x * 1.44269504088896338700 + kRound) - kRound;
    const double r = (x - n * kLn2High) - n * kLn2Low;
    double sum = 1.0;
    for (int k = 16; k >= 1; --k) sum = 1.0 + sum * r / k;
    const auto exponent = static_cast<std::int64_t>(n) + 1023;
    return sum * std::bit_cast<double>(static_cast<std::uint64_t>(exponent) << 52U);
}

SinCos sincos_f64(double x) {
    const double n = (x * 0.63661977236758138243 + kRound) - kRound;
    const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
    const double r2 = r * r;
    // Taylor series on |r| <= pi/4: the first term left out is below 1e-19.
    double sin_sum = 1.0;
    for (int k = 18; k >= 2; k -= 2) sin_sum = 1.0 - sin_sum * r2 / (k * (k + 1));
    double cos_sum = 1.0;
    for (int k = 17; k >= 1; k -= 2) cos_sum = 1.0 - cos_sum * r2 / (k * (k + 1));
    const double sine = sin_sum * r;
    switch (static_cast<std::int64_t>(n) & 3) {
        case 0:
            return {sine, cos_sum};
        case 1:
            return {cos_sum, -sine};
        case 2:
            return {-sine, -cos_sum};
        default:
            return {-cos_sum, sine};
    }
}

}  // namespace skein::model
