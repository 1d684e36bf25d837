#pragma once
// The move spaces of the tasks in this folder.

#include <vector>

#include "harnesses/kernel_opt/move_space.h"

namespace skein::harnesses {

const KernelGenerator& conv3x3_generator();
const KernelGenerator& histogram_generator();
const KernelGenerator& rmsnorm_generator();
const KernelGenerator& scan_generator();
const KernelGenerator& sgemm_generator();
const KernelGenerator& sgemv_generator();
const KernelGenerator& softmax_generator();
const KernelGenerator& transpose_generator();

/// All of them, ordered by task id.
std::vector<const KernelGenerator*> task_generators();

}  // namespace skein::harnesses
