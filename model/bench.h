#pragma once
// How fast an engine is after a given depth, and how fast this machine could be.

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "model/engine.h"

namespace skein::model {

/// Order statistics of repeated measurements.
struct Spread {
    double min = 0;
    double median = 0;
    double max = 0;
    int n = 0;
};

/// What to measure. `depth` tokens are there first and not timed.
struct SpeedOptions {
    int prompt_tokens = 512;
    int decode_tokens = 64;
    int depth = 0;
    int repetitions = 5;
    /// The cache is filled with pseudo-random keys and values instead of by a prefill. Their index
    /// scores are spread evenly, so that every token selects other blocks: the worst case.
    bool synthetic = false;
};

/// What one evaluation cannot avoid: bytes read once, and operations: of the projections and of
/// index scores on int13 keys (16-bit integers), and of attention (floats; index scores on other
/// types too). A multiply and an add count as two.
struct StepWork {
    double weight_bytes = 0;
    double kv_bytes = 0;
    double index_bytes = 0;
    double projection_ops = 0;
    double index_ops = 0;
    double attention_flops = 0;
    double bytes() const { return weight_bytes + kv_bytes + index_bytes; }
};

/// The work of `tokens` tokens placed after `depth` tokens. Bytes of keys and values are counted
/// for a single token only; a prompt piece is bound by arithmetic.
StepWork step_work(const Engine& engine, int depth, int tokens);

struct SpeedReport {
    SpeedOptions options;
    int threads = 0;
    Spread prefill_tokens_per_s;  ///< a prompt piece placed after `depth` tokens
    Spread decode_tokens_per_s;   ///< single tokens after `depth` tokens
    StepWork prefill;             ///< of the whole piece
    StepWork decode;              ///< of one token
    std::size_t kv_bytes = 0;     ///< of the timeline
    double decode_gb_per_s() const { return decode.bytes() * decode_tokens_per_s.median / 1e9; }
};

/// Which figures to measure; the others stay zero.
enum class SpeedPart { both, prefill, decode };

/// Runs the model on tokens without meaning; nothing is sampled.
/// Throws: Error when the context is too short for what is asked.
SpeedReport measure_speed(const Engine& engine, const SpeedOptions& options = {},
                          SpeedPart part = SpeedPart::both, PrefillProgress* progress = nullptr);

/// What selecting blocks costs: the same steps with and without it (the last blocks instead, as
/// many), by turns.
struct SelectReport {
    SpeedReport selecting;
    SpeedReport local;
    double decode_share() const;   ///< of a decode step
    double prefill_share() const;  ///< of a prompt piece
};

/// Requires: the same file in both, `local` loaded with AttentionMode::local.
SelectReport measure_select(const Engine& engine, const Engine& local, const SpeedOptions& options,
                            PrefillProgress* progress = nullptr);

struct ForkReport {
    Spread microseconds;
    int full_blocks = 0;
    int copied_full_blocks = 0;  ///< the most of any repetition
};
ForkReport measure_fork(const Engine& engine, const SpeedOptions& options,
                        PrefillProgress* progress = nullptr);

struct ResumeReport {
    Spread save_seconds;
    Spread load_seconds;  ///< through the page cache
    std::size_t file_bytes = 0;
    int evaluated = 0;        ///< tokens, by a sync to the saved prefix after loading
    bool same_logits = true;  ///< bit for bit, of every repetition
};

/// Writes `file` and removes it. Throws: Error when it cannot be written or read.
ResumeReport measure_resume(const Engine& engine, const SpeedOptions& options,
                            const std::filesystem::path& file, PrefillProgress* progress = nullptr);

/// Upper bounds of this machine with the given number of threads.
struct MachineRoof {
    int threads = 0;
    double read_gb_per_s = 0;         ///< DRAM reads, best of several passes
    double fma_f32_gflop_per_s = 0;   ///< fused multiply-adds in registers
    double madd_int16_gop_per_s = 0;  ///< 16-bit multiplies and adds, as quantised weights use
    /// The least time for this work: memory or arithmetic, whichever takes longer.
    double least_seconds(const StepWork& work) const;
};

/// Takes about a second. Zero where this build has no vector kernels for the CPU.
MachineRoof machine_roof(int threads);

}  // namespace skein::model
