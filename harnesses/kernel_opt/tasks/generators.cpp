#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

std::vector<const KernelGenerator*> task_generators() {
    return {
        &conv3x3_generator(), &histogram_generator(), &rmsnorm_generator(), &scan_generator(),
        &sgemm_generator(),   &sgemv_generator(),     &softmax_generator(), &transpose_generator(),
    };
}

}  // namespace skein::harnesses
