#include "tools/profiler/machine_roof.h"

#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>

namespace skein::tools {
namespace {

constexpr double kFmaHeadroom = 1.10;
constexpr double kCacheHeadroom = 1.35;  ///< kernels load and store at once, the probes only one
constexpr int kProbes = 5;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Ten independent chains hide the latency of both FMA ports. The chains are named variables: an
/// array of them would live in memory.
__attribute__((target("avx2,fma"))) double fma_avx2(long rounds) {
    const __m256 a = _mm256_set1_ps(0.999F), b = _mm256_set1_ps(0.001F);
    __m256 s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a;
    for (long i = 0; i < rounds; ++i) {
        s0 = _mm256_fmadd_ps(s0, a, b);
        s1 = _mm256_fmadd_ps(s1, a, b);
        s2 = _mm256_fmadd_ps(s2, a, b);
        s3 = _mm256_fmadd_ps(s3, a, b);
        s4 = _mm256_fmadd_ps(s4, a, b);
        s5 = _mm256_fmadd_ps(s5, a, b);
        s6 = _mm256_fmadd_ps(s6, a, b);
        s7 = _mm256_fmadd_ps(s7, a, b);
        s8 = _mm256_fmadd_ps(s8, a, b);
        s9 = _mm256_fmadd_ps(s9, a, b);
        __asm__ volatile("" : "+x"(s0), "+x"(s1), "+x"(s2), "+x"(s3), "+x"(s4));
        __asm__ volatile("" : "+x"(s5), "+x"(s6), "+x"(s7), "+x"(s8), "+x"(s9));
    }
    return 10.0 * 16.0 * static_cast<double>(rounds);
}

__attribute__((target("avx512f"))) double fma_avx512(long rounds) {
    const __m512 a = _mm512_set1_ps(0.999F), b = _mm512_set1_ps(0.001F);
    __m512 s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a;
    for (long i = 0; i < rounds; ++i) {
        s0 = _mm512_fmadd_ps(s0, a, b);
        s1 = _mm512_fmadd_ps(s1, a, b);
        s2 = _mm512_fmadd_ps(s2, a, b);
        s3 = _mm512_fmadd_ps(s3, a, b);
        s4 = _mm512_fmadd_ps(s4, a, b);
        s5 = _mm512_fmadd_ps(s5, a, b);
        s6 = _mm512_fmadd_ps(s6, a, b);
        s7 = _mm512_fmadd_ps(s7, a, b);
        s8 = _mm512_fmadd_ps(s8, a, b);
        s9 = _mm512_fmadd_ps(s9, a, b);
        __asm__ volatile("" : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4));
        __asm__ volatile("" : "+v"(s5), "+v"(s6), "+v"(s7), "+v"(s8), "+v"(s9));
    }
    return 10.0 * 32.0 * static_cast<double>(rounds);
}

/// Reads every byte once a pass; four accumulators so that loads, not the OR, are the limit.
__attribute__((target("avx2"))) void read_all(const std::byte* data, std::size_t bytes) {
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (std::size_t i = 0; i + 128 <= bytes; i += 128) {
        const auto* at = reinterpret_cast<const __m256i*>(data + i);
        a = _mm256_or_si256(a, _mm256_load_si256(at));
        b = _mm256_or_si256(b, _mm256_load_si256(at + 1));
        c = _mm256_or_si256(c, _mm256_load_si256(at + 2));
        d = _mm256_or_si256(d, _mm256_load_si256(at + 3));
    }
    a = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    __asm__ volatile("" : : "x"(a));
}

/// Copies one half onto the other; both directions count as traffic.
__attribute__((target("avx2"))) void copy_half(std::byte* data, std::size_t bytes) {
    const std::size_t half = bytes / 2;
    for (std::size_t i = 0; i + 64 <= half; i += 64) {
        const auto* from = reinterpret_cast<const __m256i*>(data + i);
        auto* to = reinterpret_cast<__m256i*>(data + half + i);
        _mm256_store_si256(to, _mm256_load_si256(from));
        _mm256_store_si256(to + 1, _mm256_load_si256(from + 1));
    }
    __asm__ volatile("" : : : "memory");
}

double best_bandwidth(std::byte* data, std::size_t bytes, int passes) {
    if (__builtin_cpu_supports("avx2") == 0) return 0;
    double best = 0;
    for (int probe = 0; probe < kProbes; ++probe) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < passes; ++i) read_all(data, bytes);
        best = std::max(best, static_cast<double>(bytes) * passes / seconds_since(start));
        start = std::chrono::steady_clock::now();
        for (int i = 0; i < passes; ++i) copy_half(data, bytes);
        best = std::max(best, static_cast<double>(bytes) * passes / seconds_since(start));
    }
    return best * kCacheHeadroom;
}

double best_fma() {
    const bool wide = __builtin_cpu_supports("avx512f") != 0;
    if (!wide && __builtin_cpu_supports("fma") == 0) return 0;
    double best = 0;
    for (int probe = 0; probe < 2 * kProbes; ++probe) {
        const auto start = std::chrono::steady_clock::now();
        const double flops = wide ? fma_avx512(200000) : fma_avx2(200000);
        best = std::max(best, flops / seconds_since(start));
    }
    return best * kFmaHeadroom;
}

/// From sysfs; a common size when the machine does not say.
double cache_bytes(int level, double fallback) {
    for (int index = 0; index < 8; ++index) {
        const std::string base = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
        int found = 0;
        std::string type;
        double size = 0;
        char unit = 'K';
        std::ifstream(base + "level") >> found;
        std::ifstream(base + "type") >> type;
        std::ifstream(base + "size") >> size >> unit;
        if (found == level && type != "Instruction" && size > 0) {
            return size * (unit == 'M' ? 1 << 20 : 1 << 10);
        }
    }
    return fallback;
}

std::mutex roof_mutex;

MachineRoof& stored_roof() {
    static MachineRoof roof = probe_machine_roof();
    return roof;
}

}  // namespace

MachineRoof probe_machine_roof() {
    MachineRoof roof;
    roof.l1_bytes = cache_bytes(1, 32 << 10);
    roof.l2_bytes = cache_bytes(2, 512 << 10);
    roof.l3_bytes = cache_bytes(3, 8 << 20);
    constexpr std::size_t kLargest = 64 << 20;
    const std::unique_ptr<std::byte[], void (*)(std::byte*)> memory(
        static_cast<std::byte*>(::operator new(kLargest, std::align_val_t(64))),
        [](std::byte* data) { ::operator delete(data, std::align_val_t(64)); });
    std::fill(memory.get(), memory.get() + kLargest,
              std::byte{1});  // real pages, not the zero page
    const auto share = [](double bytes, double part) {
        return static_cast<std::size_t>(bytes * part) / 256 * 256;
    };
    roof.fma_flops = best_fma();
    roof.l1_bandwidth = best_bandwidth(memory.get(), share(roof.l1_bytes, 0.5), 2000);
    roof.l2_bandwidth = best_bandwidth(memory.get(), share(roof.l2_bytes, 0.5), 60);
    const double l3_probe = std::min(std::max(roof.l3_bytes / 8, 2 * roof.l2_bytes), 4.0e6);
    roof.l3_bandwidth = best_bandwidth(memory.get(), share(l3_probe, 1), 6);
    roof.dram_bandwidth = best_bandwidth(memory.get(), kLargest, 1);
    // A smaller level is never slower than a larger one, whatever a disturbed probe says.
    roof.l3_bandwidth = std::max(roof.l3_bandwidth, roof.dram_bandwidth);
    roof.l2_bandwidth = std::max(roof.l2_bandwidth, roof.l3_bandwidth);
    roof.l1_bandwidth = std::max(roof.l1_bandwidth, roof.l2_bandwidth);
    return roof;
}

const MachineRoof& machine_roof() {
    const std::lock_guard lock(roof_mutex);
    return stored_roof();
}

const MachineRoof& refresh_machine_roof() {
    const MachineRoof fresh = probe_machine_roof();
    const std::lock_guard lock(roof_mutex);
    MachineRoof& roof = stored_roof();
    roof.fma_flops = std::max(roof.fma_flops, fresh.fma_flops);
    roof.l1_bandwidth = std::max(roof.l1_bandwidth, fresh.l1_bandwidth);
    roof.l2_bandwidth = std::max(roof.l2_bandwidth, fresh.l2_bandwidth);
    roof.l3_bandwidth = std::max(roof.l3_bandwidth, fresh.l3_bandwidth);
    roof.dram_bandwidth = std::max(roof.dram_bandwidth, fresh.dram_bandwidth);
    return roof;
}

KernelLimit kernel_limit(const MachineRoof& roof, double flops, double bytes, double working_set) {
    struct Level {
        const char* name;
        double end, bandwidth;
    };
    const std::array<Level, 4> levels{
        {{"l1", roof.l1_bytes, roof.l1_bandwidth},
         {"l2", roof.l2_bytes, roof.l2_bandwidth},
         {"l3", roof.l3_bytes, roof.l3_bandwidth},
         {"dram", std::max(working_set, roof.l3_bytes), roof.dram_bandwidth}}};
    double seconds_per_sweep = 0, begin = 0;
    const char* bound = "l1";
    for (const Level& level : levels) {
        const double part = std::min(working_set, level.end) - begin;
        if (part <= 0 || level.bandwidth <= 0) continue;
        seconds_per_sweep += part / level.bandwidth;
        begin += part;
        bound = level.name;
    }
    const double memory = working_set > 0 ? seconds_per_sweep * bytes / working_set : 0;
    const double arithmetic = roof.fma_flops > 0 ? flops / roof.fma_flops : 0;
    if (arithmetic >= memory) return {arithmetic * 1e9, "fma"};
    return {memory * 1e9, bound};
}

}  // namespace skein::tools
