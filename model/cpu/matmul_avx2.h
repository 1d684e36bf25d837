#pragma once
// The projections of the AVX2 table; see CpuKernels::matmul.

#include <cstddef>

#include "model/cpu/kernels.h"

namespace skein::model::avx2 {

void matmul(const PackedMatrix& matrix, int panel_begin, int panel_end,
            const Activations& activations, int n_rows, float* out, std::size_t out_stride);

}  // namespace skein::model::avx2
