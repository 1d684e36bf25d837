#pragma once
// Stored blocks taken apart: integer codes, scale and minimum of 32 weights at a time, without
// turning anything into float. value = scale * (code - offset) + minimum.

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/load/dtype.h"

namespace skein::model {

/// What the codes of a stored quantised type look like once taken apart.
struct CodeLayout {
    bool nibbles = false;      ///< codes are 0..15; otherwise signed bytes
    int group = 32;            ///< weights that share a scale: 32 or 16
    bool wide_scales = false;  ///< scales are f32 (products of two stored numbers), not f16
    bool minimums = false;     ///< a minimum is added
    int offset = 0;            ///< subtracted from every code (nibbles only)
};

/// Requires: a quantised type.
CodeLayout code_layout(DType type);

/// 32 consecutive weights of a row.
struct Codes32 {
    std::array<std::int8_t, 32> codes{};
    std::array<float, 2> scale{};  ///< one a group; the second only when group is 16
    float minimum = 0;
};

/// Takes apart the weights [32 * index, 32 * index + 32) of the row that starts at `row`.
Codes32 read_codes(DType type, const std::byte* row, std::int64_t index);

}  // namespace skein::model
