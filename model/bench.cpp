#include "model/bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "model/cpu/huge_buffer.h"
#include "model/cpu/roof.h"
#include "model/cpu/thread_pool.h"

namespace skein::model {
namespace {

template <typename Body>
double seconds_of(const Body& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    if (n == 0) return {};
    const double median = n % 2 != 0 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
    return {values.front(), median, values.back(), static_cast<int>(n)};
}

/// Ids without meaning that never repeat a short pattern.
Tokens meaningless_tokens(int count, int vocab_size) {
    Tokens tokens;
    std::uint32_t state = 12345;
    for (int i = 0; i < count; ++i) {
        state = state * 1664525U + 1013904223U;
        tokens.push_back(
            static_cast<Token>((state >> 8U) % static_cast<std::uint32_t>(vocab_size)));
    }
    return tokens;
}

/// Weights of the layers' projections: what every prefilled token is multiplied with.
double projection_weights(const ModelConfig& config) {
    double weights = 0;
    for (const LayerConfig& layer : config.layers) {
        const double attention = 2.0 * config.n_heads + 2.0 * layer.n_kv_heads;
        weights += config.dim * (attention * config.head_dim + 3.0 * layer.hidden_dim);
    }
    return weights;
}

/// Work a second of all threads together, from the best of a few rounds.
template <typename Work>
double best_rate(ThreadPool& pool, const Work& work) {
    double best = 0;
    for (int round = 0; round < 5; ++round) {
        std::atomic<std::uint64_t> done{0};
        const double seconds = seconds_of([&] {
            pool.parallel_for(pool.size(), 1, [&](int begin, int end) {
                for (int i = begin; i < end; ++i) done += work(i);
            });
        });
        best = std::max(best, static_cast<double>(done.load()) / seconds);
    }
    return best;
}

}  // namespace

SpeedReport measure_speed(const Engine& engine, const SpeedOptions& options) {
    SpeedReport report;
    report.options = options;
    report.threads = engine.threads();
    const int longest = std::max(options.prompt_tokens, options.decode_tokens);
    const Tokens tokens = meaningless_tokens(options.depth + longest, engine.config().vocab_size);
    const std::span<const Token> all(tokens);
    const auto depth = static_cast<std::size_t>(options.depth);
    Session session = engine.new_session();
    std::vector<double> prefill;
    std::vector<double> decode;
    for (int i = 0; i < options.repetitions; ++i) {
        session.sync(all.first(depth));
        const double prefill_s = seconds_of([&] {
            session.sync(all.first(depth + static_cast<std::size_t>(options.prompt_tokens)));
        });
        prefill.push_back(options.prompt_tokens / prefill_s);
        session.rewind(options.depth);
        const double decode_s = seconds_of([&] {
            for (int t = 0; t < options.decode_tokens; ++t)
                session.decode(all[depth + static_cast<std::size_t>(t)]);
        });
        decode.push_back(options.decode_tokens / decode_s);
        session.rewind(options.depth);
    }
    report.prefill_tokens_per_s = spread_of(prefill);
    report.decode_tokens_per_s = spread_of(decode);
    report.weight_bytes_per_token = engine.weight_bytes();
    report.kv_bytes_per_token_at_depth = engine.kv_bytes_per_token() * depth;
    const auto bytes =
        static_cast<double>(report.weight_bytes_per_token + report.kv_bytes_per_token_at_depth);
    report.decode_gb_per_s = bytes * report.decode_tokens_per_s.median / 1e9;
    report.prefill_gflop_per_s =
        2.0 * projection_weights(engine.config()) * report.prefill_tokens_per_s.median / 1e9;
    return report;
}

MachineRoof machine_roof(int threads) {
    ThreadPool pool(threads);
    MachineRoof roof;
    roof.threads = threads;
    // Far larger than any last-level cache, so that every pass comes from memory.
    const std::size_t bytes_each = (std::size_t{256} << 20U) / static_cast<std::size_t>(threads);
    const std::size_t words_each = bytes_each / sizeof(std::uint64_t);
    const HugeBuffer memory(bytes_each * static_cast<std::size_t>(threads), "the bandwidth test");
    auto* words = reinterpret_cast<std::uint64_t*>(memory.data());
    std::fill_n(words, words_each * static_cast<std::size_t>(threads), std::uint64_t{1});
    std::atomic<std::uint64_t> sink{0};
    roof.read_gb_per_s =
        best_rate(pool,
                  [&](int thread) -> std::uint64_t {
                      sink += read_all(
                          {words + static_cast<std::size_t>(thread) * words_each, words_each});
                      return bytes_each;
                  }) /
        1e9;
    roof.fma_f32_gflop_per_s = best_rate(pool, [](int) { return spin_fma(); }) / 1e9;
    roof.madd_int16_gop_per_s = best_rate(pool, [](int) { return spin_madd(); }) / 1e9;
    return roof;
}

}  // namespace skein::model
