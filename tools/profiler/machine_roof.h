#pragma once
// What one core of this machine can do at best, measured, and the time limit that follows from it.

#include <string>

namespace skein::tools {

/// Peaks of one core. A limit must never be beaten by an honest kernel, so each is the best of
/// several probes with head-room on top.
struct MachineRoof {
    double fma_flops = 0;  ///< fp32 operations a second, a fused multiply-add counts two
    double l1_bandwidth = 0, l2_bandwidth = 0, l3_bandwidth = 0, dram_bandwidth = 0;  ///< bytes/s
    double l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
};

/// Takes about 0.3 s. Requires: x86-64 with AVX2 and FMA for meaningful values.
MachineRoof probe_machine_roof();

/// The probe of this process, made on first use.
const MachineRoof& machine_roof();

/// Probes again and keeps the better of old and new: for a kernel that seems to beat the limit.
const MachineRoof& refresh_machine_roof();

struct KernelLimit {
    double ns = 0;
    std::string bound;  ///< "fma", "l1", "l2", "l3" or "dram"
};

/// Lower bound of one call: arithmetic at peak, or `bytes` from wherever `working_set` bytes can
/// lie at best (the first l1_bytes in L1, and so on), whichever takes longer.
KernelLimit kernel_limit(const MachineRoof& roof, double flops, double bytes, double working_set);

}  // namespace skein::tools
