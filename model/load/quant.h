#pragma once
// Scalar decode and encode of every stored block format: the definition that faster code is
// checked against.  Source: ggml block layouts (see README of this folder).

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/load/dtype.h"

namespace skein::model {

float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);  ///< round to nearest even
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);  ///< round to nearest even

/// E4M3 of the OCP 8-bit floating point specification: no infinities, 0x7F and 0xFF are NaN.
float e4m3_to_f32(std::uint8_t bits);

/// Decodes `out.size()` elements (a whole number of blocks) from `blocks`.
void dequantize(DType type, const std::byte* blocks, std::span<float> out);

/// Encodes whole blocks; supported for f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1.
/// Throws: Error for a type without an encoder.
void quantize(DType type, std::span<const float> values, std::byte* blocks);

}  // namespace skein::model
