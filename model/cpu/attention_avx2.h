#pragma once
// Attention and block scores of the AVX2 table; see CpuKernels::attend, score_blocks.

#include "model/cpu/kernels.h"

namespace skein::model::avx2 {

void attend(const AttentionBlock& block);
void score_blocks(const IndexBlock& block);
void bound_blocks(const IndexBlock& block);
void join_codes(const std::byte* planes, int dim, std::int16_t* codes);

}  // namespace skein::model::avx2
