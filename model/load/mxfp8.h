#pragma once
// 8-bit weights with one power of two for every 32 of a row, as MiniMax-M3's MXFP8 release stores
// them: `<name>` of type F8_E4M3 and `<name>_scale_inv` of type U8; value = e4m3 * 2^(scale - 127).
// Source: OCP Microscaling Formats (MX) specification 1.0, formats E4M3 and E8M0.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "model/load/tensor.h"

namespace skein::model {

inline constexpr std::int64_t kMxBlock = 32;
inline constexpr std::string_view kMxScaleSuffix = "_scale_inv";

struct ConvertedTensor {
    Tensor tensor;  ///< BF16 when that holds every value exactly, else F32, which always does
    std::unique_ptr<std::byte[]> memory;  ///< what tensor.data points to
};

/// Requires: weight.type is f8_e4m3.
/// Throws: Error when the scales have another type or shape, or a value is not a finite number.
ConvertedTensor convert_mxfp8(const Tensor& weight, const Tensor& scales, std::string_view where);

}  // namespace skein::model
