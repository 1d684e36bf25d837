#pragma once
// How fast an engine is, and how fast this machine could be.

#include <cstddef>

#include "model/engine.h"

namespace skein::model {

/// Order statistics of repeated measurements.
struct Spread {
    double min = 0;
    double median = 0;
    double max = 0;
    int n = 0;
};

/// What to measure. `depth` tokens are evaluated first and not timed.
struct SpeedOptions {
    int prompt_tokens = 512;
    int decode_tokens = 64;
    int depth = 0;
    int repetitions = 5;
};

struct SpeedReport {
    SpeedOptions options;
    int threads = 0;
    Spread prefill_tokens_per_s;  ///< a prompt piece placed after `depth` tokens
    Spread decode_tokens_per_s;   ///< single tokens after `depth` tokens
    std::size_t weight_bytes_per_token = 0;
    std::size_t kv_bytes_per_token_at_depth = 0;  ///< read to decode one token after `depth`
    double decode_gb_per_s = 0;      ///< bytes of weights, keys and values moved in a median second
    double prefill_gflop_per_s = 0;  ///< two a weight of the layers' projections
};

/// Runs the model on tokens without meaning; nothing is sampled.
/// Throws: Error when the context is too short for what is asked.
SpeedReport measure_speed(const Engine& engine, const SpeedOptions& options = {});

/// Upper bounds of this machine with the given number of threads.
struct MachineRoof {
    int threads = 0;
    double read_gb_per_s = 0;         ///< DRAM reads, best of several passes
    double fma_f32_gflop_per_s = 0;   ///< fused multiply-adds in registers
    double madd_int16_gop_per_s = 0;  ///< 16-bit multiplies and adds, as quantised weights use
};

/// Takes about a second. Zero where this build has no vector kernels for the CPU.
MachineRoof machine_roof(int threads);

}  // namespace skein::model
