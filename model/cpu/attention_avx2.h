#pragma once
// Attention and block scores of the AVX2 table; see CpuKernels::attend and score_blocks.

#include "model/cpu/kernels.h"

namespace skein::model::avx2 {

void attend(const AttentionBlock& block);
void score_blocks(const IndexBlock& block);

}  // namespace skein::model::avx2
