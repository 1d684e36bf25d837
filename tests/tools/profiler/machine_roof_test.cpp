#include "tools/profiler/machine_roof.h"

#include <doctest/doctest.h>

using namespace skein::tools;

namespace {

MachineRoof example() {
    MachineRoof roof;
    roof.fma_flops = 100e9;
    roof.l1_bandwidth = 200e9;
    roof.l2_bandwidth = 100e9;
    roof.l3_bandwidth = 50e9;
    roof.dram_bandwidth = 10e9;
    roof.l1_bytes = 32 << 10;
    roof.l2_bytes = 512 << 10;
    roof.l3_bytes = 32 << 20;
    return roof;
}

}  // namespace

TEST_SUITE("tools/profiler/machine_roof") {
    TEST_CASE("machine_roof: a probe of this machine is ordered and positive") {
        const MachineRoof roof = probe_machine_roof();
        CHECK(roof.fma_flops > 1e9);
        CHECK(roof.dram_bandwidth > 1e8);
        CHECK(roof.l1_bandwidth >= roof.l2_bandwidth);
        CHECK(roof.l2_bandwidth >= roof.l3_bandwidth);
        CHECK(roof.l3_bandwidth >= roof.dram_bandwidth);
        CHECK(roof.l1_bytes < roof.l2_bytes);
    }

    TEST_CASE("machine_roof: arithmetic limits a kernel that reuses its data") {
        const KernelLimit limit = kernel_limit(example(), 1e9, 1 << 10, 1 << 10);
        CHECK(limit.bound == "fma");
        CHECK(limit.ns == doctest::Approx(1e7));
    }

    TEST_CASE("machine_roof: bytes come from the level that holds them, the first ones faster") {
        const MachineRoof roof = example();
        CHECK(kernel_limit(roof, 0, 16 << 10, 16 << 10).bound == "l1");
        const KernelLimit l3 = kernel_limit(roof, 0, 4 << 20, 4 << 20);
        CHECK(l3.bound == "l3");
        const double expected = (32 << 10) / 200e9 + (480 << 10) / 100e9 + (3584 << 10) / 50e9;
        CHECK(l3.ns == doctest::Approx(expected * 1e9));
        CHECK(kernel_limit(roof, 0, 64 << 20, 64 << 20).bound == "dram");
    }

    TEST_CASE("machine_roof: bytes that cross twice count twice") {
        const MachineRoof roof = example();
        const double once = kernel_limit(roof, 0, 4 << 20, 4 << 20).ns;
        CHECK(kernel_limit(roof, 0, 8 << 20, 4 << 20).ns == doctest::Approx(2 * once));
    }

    TEST_CASE("machine_roof: a second probe never lowers the roof") {
        const MachineRoof before = machine_roof();
        const MachineRoof after = refresh_machine_roof();
        CHECK(after.fma_flops >= before.fma_flops);
        CHECK(after.l3_bandwidth >= before.l3_bandwidth);
    }
}
