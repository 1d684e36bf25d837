#pragma once
// Our own elementary functions, so that bits never depend on a C library, its version or the CPU
// it picks code for. Everything here is additions, multiplications, divisions, square roots and
// fused multiply-adds, which IEEE 754 rounds in exactly one way.
//
// The f32 functions are the scalar form of what kernels_avx2.cpp does in 8 lanes: same steps, same
// order. The f64 functions make tables (rotary angles), where accuracy matters and speed does not.

#include <bit>
#include <cmath>
#include <cstdint>

namespace skein::model {

/// As the vector instructions: the second operand when either is NaN.
inline float max_f32(float a, float b) {
    return a > b ? a : b;
}
inline float min_f32(float a, float b) {
    return a < b ? a : b;
}

/// a * b + c with one rounding; correctly rounded by every C library, hence no table of bits.
inline float fma_f32(float a, float b, float c) {
    return std::fma(a, b, c);
}

/// The constants of exp_f32, shared with the vector version.
namespace exp_constants {
inline constexpr float kLowest = -87.0F;  ///< below: the result is 0
inline constexpr float kHighest = 88.0F;  ///< above: the result stays exp(88), finite
inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kRound = 12582912.0F;  ///< 1.5 * 2^23: adding it rounds to an integer
inline constexpr float kLn2High = 0.693359375F;
inline constexpr float kLn2Low = -2.12194440e-4F;
/// Minimax coefficients of (exp(r) - 1 - r) / r^2 on |r| <= ln(2)/2, highest power first.
inline constexpr float kPoly[6] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                   4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
}  // namespace exp_constants

/// exp(x), relative error below 2e-7 on [-87, 88]; 0 below, exp(88) above, NaN for NaN.
inline float exp_f32(float x) {
    using namespace exp_constants;
    const float clamped = min_f32(kHighest, max_f32(kLowest, x));
    const float shifted = fma_f32(clamped, kLog2E, kRound);
    const float n = shifted - kRound;
    float r = fma_f32(n, -kLn2High, clamped);
    r = fma_f32(n, -kLn2Low, r);
    float p = kPoly[0];
    for (int i = 1; i < 6; ++i) p = fma_f32(p, r, kPoly[i]);
    p = fma_f32(p, r * r, r) + 1.0F;
    // The low bits of `shifted` are n in two's complement: they become the exponent of 2^n.
    const auto scale_bits = (std::bit_cast<std::uint32_t>(shifted) << 23U) + 0x3F800000U;
    const float result = p * std::bit_cast<float>(scale_bits);
    return x < kLowest ? 0.0F : result;
}

/// x * sigmoid(x).
inline float silu_f32(float x) {
    return x / (1.0F + exp_f32(-x));
}

/// Natural logarithm of a positive normal number, error of a few units in the last place.
double log_f64(double x);
/// exp(x) for |x| < 700, error of a few units in the last place.
double exp_f64(double x);

struct SinCos {
    double sin = 0;
    double cos = 1;
};
/// Requires: |x| < 2^20 (a position of a million tokens turned by one radian each). Absolute
/// error below 1e-15.
SinCos sincos_f64(double x);

}  // namespace skein::model
