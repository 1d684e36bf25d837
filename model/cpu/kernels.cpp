#include "model/cpu/kernels.h"

#include <vector>

#include "model/error.h"

namespace skein::model {
namespace {

bool cpu_has_avx2() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
#else
    return false;
#endif
}

std::vector<const CpuKernels*> find_available() {
    std::vector<const CpuKernels*> tables{&scalar_kernels()};
    if (avx2_kernels() != nullptr && cpu_has_avx2()) tables.push_back(avx2_kernels());
    return tables;
}

}  // namespace

std::span<const CpuKernels* const> available_kernels() {
    static const std::vector<const CpuKernels*> tables = find_available();
    return tables;
}

const CpuKernels& select_kernels(Isa isa) {
    if (isa == Isa::automatic) return *available_kernels().back();
    for (const CpuKernels* table : available_kernels())
        if (table->isa == isa) return *table;
    throw Error(
        "kernels: AVX2 was requested, but this CPU lacks AVX2, FMA or F16C; use isa "
        "'automatic' or 'scalar' (same bits, slower)");
}

}  // namespace skein::model
