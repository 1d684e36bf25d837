#pragma once
// A non-owning view of one stored tensor.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/load/dtype.h"

namespace skein::model {

/// Shapes: `dims[0]` is the fastest extent (row length), `dims[1]` the number of rows; unused
/// are 1. Lifetime: `data` points into the mapped file and lives as long as the ModelFile.
struct Tensor {
    std::string name;
    DType type = DType::f32;
    std::array<std::int64_t, 4> dims{1, 1, 1, 1};
    int n_dims = 0;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::int64_t row_length() const { return dims[0]; }
    std::int64_t n_rows() const { return dims[1] * dims[2] * dims[3]; }
    std::size_t row_bytes() const { return bytes / static_cast<std::size_t>(n_rows()); }
};

}  // namespace skein::model
