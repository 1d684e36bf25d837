#pragma once
// Exact causal attention over all blocks of a KV block table.

#include "model/attention/attention.h"

namespace skein::model {

void attend_dense(const AttentionCall& call, const CpuKernels& kernels, ThreadPool& pool,
                  AttentionScratch& scratch);

}  // namespace skein::model
