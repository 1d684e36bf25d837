#pragma once
// Attention of the AVX2 table; see CpuKernels::attend.

#include "model/cpu/kernels.h"

namespace skein::model::avx2 {

void attend(const AttentionBlock& block);

}  // namespace skein::model::avx2
