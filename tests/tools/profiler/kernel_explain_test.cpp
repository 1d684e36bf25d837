#include "tools/profiler/kernel_explain.h"

#include <doctest/doctest.h>

using namespace skein::tools;

namespace {

// A dot product: an outer loop over rows, an inner one with a single vector accumulator.
constexpr const char* kDisassembly = R"(
/build/kernel.so:     file format elf64-x86-64

0000000000001100 <other>:
    1100:	jmp    1100 <other>

0000000000001140 <dot>:
    1140:	vxorps xmm0,xmm0,xmm0
    1148:	xor    eax,eax
    1150:	vmovups ymm1,YMMWORD PTR [rdi+rax*1]
    1158:	vfmadd231ps ymm0,ymm1,YMMWORD PTR [rsi+rax*1]
    1160:	add    rax,0x20
    1168:	cmp    rax,rcx
    1170:	jne    1150 <dot+0x10>
    1178:	vmovss DWORD PTR [rdx],xmm0
    1180:	dec    r8
    1188:	jne    1148 <dot+0x8>
    1190:	ret
)";

constexpr const char* kScalar = R"(
0000000000001000 <sum>:
    1000:	vmovss xmm1,DWORD PTR [rdi+rax*4]
    1006:	vmovss DWORD PTR [rsp+0x10],xmm1
    100c:	vaddss xmm0,xmm0,xmm1
    1010:	inc    rax
    1013:	jne    1000 <sum>
)";

}  // namespace

TEST_SUITE("tools/profiler/kernel_explain") {
    TEST_CASE("kernel_explain: finds the innermost loop of the function and counts it") {
        const LoopMix loop = find_hot_loop(kDisassembly, "dot");
        CHECK(loop.depth == 2);
        CHECK(loop.instructions == 5);
        CHECK(loop.vector_fp == 1);
        CHECK(loop.scalar_fp == 0);
        CHECK(loop.fma == 1);
        CHECK(loop.loads == 2);
        CHECK(loop.stores == 0);
        CHECK(loop.stack == 0);
        CHECK(loop.chains == 1);
        CHECK(loop.vector_bits == 256);
        REQUIRE(loop.listing.size() == 5);
        CHECK(loop.listing[1] == "vfmadd231ps ymm0,ymm1,YMMWORD PTR [rsi+rax*1]");
    }

    TEST_CASE("kernel_explain: tells scalar arithmetic and spills") {
        const LoopMix loop = find_hot_loop(kScalar, "sum");
        CHECK(loop.scalar_fp == 1);
        CHECK(loop.vector_fp == 0);
        CHECK(loop.stack == 1);
        CHECK(loop.stores == 1);
        CHECK(loop.chains == 1);
    }

    TEST_CASE("kernel_explain: a function without loops, or none at all, is no error") {
        CHECK(find_hot_loop(kDisassembly, "missing").depth == 0);
        CHECK(find_hot_loop("", "dot").depth == 0);
        CHECK(find_hot_loop("garbage <dot>:\n zz:\tjmp qq\n :\t\n", "dot").depth == 0);
    }

    TEST_CASE("kernel_explain: keeps the vectoriser's lines about the kernel, each once") {
        const std::string output =
            "kernel.cc:7:5: optimized: loop vectorized using 32 byte vectors\n"
            "kernel.cc:7:5: optimized: loop vectorized using 32 byte vectors\n"
            "/usr/include/x.h:1:1: optimized: loop vectorized using 32 byte vectors\n"
            "kernel.cc:9:5: missed: couldn't vectorize loop\n"
            "kernel.cc:9:20: missed: not vectorized: complicated access pattern.\n"
            "kernel.cc:3:2: missed: statement clobbers memory: foo ();\n";
        const auto remarks = vectoriser_remarks(output, "kernel.cc", 10);
        REQUIRE(remarks.size() == 2);
        CHECK(remarks[0].find("optimized") != std::string::npos);
        CHECK(remarks[1].find("complicated") != std::string::npos);
        CHECK(vectoriser_remarks(output, "kernel.cc", 1).size() == 1);
    }

    TEST_CASE("kernel_explain: the verdict follows the closest limit") {
        const LoopMix dot = find_hot_loop(kDisassembly, "dot");
        RooflineInput times;
        times.median_ns = 100e3;
        times.memory_ns = 80e3;
        times.memory_level = "l3";
        CHECK(roofline_verdict(times, dot) == "memory-bound (l3)");
        times.arithmetic_ns = 90e3;
        CHECK(roofline_verdict(times, dot) == "compute-bound (FMA)");
        times.memory_ns = times.arithmetic_ns = 1e3;
        CHECK(roofline_verdict(times, dot) == "latency-bound");
        CHECK(roofline_verdict(times, LoopMix{}) == "underutilised");
        times.hand_over_ns = 50e3;
        CHECK(roofline_verdict(times, dot) == "overhead-bound");
    }

    TEST_CASE("kernel_explain: at most three hints, and none invented at the limit") {
        RooflineInput times;
        times.median_ns = 100e3;
        times.memory_ns = 10e3;
        const auto hints = hints_for(times, find_hot_loop(kScalar, "sum"), {});
        CHECK(hints.size() == 3);
        CHECK(hints[0].find("vectorise") != std::string::npos);
        times.memory_ns = 95e3;
        const auto none = hints_for(times, find_hot_loop(kScalar, "sum"), {});
        REQUIRE(none.size() == 1);
        CHECK(none[0].find("nothing large") != std::string::npos);
    }
}
