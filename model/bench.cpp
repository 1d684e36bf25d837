#include "model/bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "model/attention/index_scores.h"
#include "model/cpu/huge_buffer.h"
#include "model/cpu/roof.h"
#include "model/cpu/thread_pool.h"
#include "model/kv/kv_layout.h"

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

/// Weights that every token is multiplied with, without the output head.
double projection_weights(const ModelConfig& config) {
    double weights = 0;
    for (const LayerConfig& layer : config.layers) {
        const double heads = 2.0 * config.n_heads + 2.0 * layer.n_kv_heads;
        double width = heads * config.head_dim;
        if (layer.attention == AttentionKind::msa)
            width += (layer.n_kv_heads + 1.0) * config.msa.index_dim;
        const MoeConfig& moe = config.moe;
        width += layer.mlp == MlpKind::moe
                     ? moe.n_experts + 3.0 * (moe.n_used * moe.expert_dim + moe.shared_dim)
                     : 3.0 * layer.hidden_dim;
        weights += config.dim * width;
    }
    return weights;
}

/// Tokens that one token after `depth` others attends to in this layer.
double tokens_seen(const ModelConfig& config, const LayerConfig& layer, double depth) {
    const MsaConfig& msa = config.msa;
    const bool selects = layer.attention != AttentionKind::dense;
    return selects ? std::min(depth + 1, 1.0 * msa.top_k * msa.block_tokens) : depth + 1;
}

/// What choosing blocks takes in one layer.
void add_selection(const Engine& engine, const KvLayout& layout, const LayerConfig& layer,
                   double depth, int tokens, StepWork& work) {
    const ModelConfig& config = engine.config();
    // The control selects nothing: it knows its blocks.
    if (engine.attention() == AttentionMode::local) return;
    const double blocks = depth / kBlockTokens;
    double bytes = 0;
    if (layer.attention == AttentionKind::msa) {
        const bool integers = engine.index_kv_type() == KvType::int13;
        (integers ? work.index_ops : work.attention_flops) +=
            2.0 * layer.n_kv_heads * config.msa.index_dim * (depth + 1) * tokens;
        const double page = static_cast<double>(layout.index_bytes());
        bytes = page * (depth + 1) / kBlockTokens;
        const int pages = static_cast<int>(depth) / kBlockTokens + 1;
        if (bounds_pages(layout, config.msa, pages)) {
            // The low bytes only of the pages that are scored, which are at least those selected.
            const double low = static_cast<double>(config.msa.index_dim) * kBlockTokens;
            bytes -= low * ((depth + 1) / kBlockTokens - config.msa.top_k);
        }
    } else if (layer.attention == AttentionKind::retrofit) {
        // Two products, a maximum and a sum for each channel of a block's bounds.
        work.attention_flops += 4.0 * config.n_heads * config.head_dim * blocks * tokens;
        bytes = static_cast<double>(layout.bounds_bytes()) * layer.n_kv_heads * blocks;
    }
    if (tokens == 1) work.index_bytes += bytes;
}

/// A timeline of `depth` tokens and what comes after them, measured again and again.
class SpeedRun {
  public:
    SpeedRun(const Engine& engine, const SpeedOptions& options, PrefillProgress* progress)
        : options_(options), session_(filled_session(engine, options, most(options), progress)) {
        timeline_.assign(session_.tokens().begin(), session_.tokens().end());
        const Tokens more = meaningless_tokens(most(options), engine.config().vocab_size);
        timeline_.insert(timeline_.end(), more.begin(), more.end());
        decode(std::min(8, options.decode_tokens));  // touches everything once
    }

    void prefill_once() {
        const auto end = static_cast<std::size_t>(options_.depth + options_.prompt_tokens);
        const double seconds =
            seconds_of([&] { session_.sync(std::span<const Token>(timeline_).first(end)); });
        prefill_.push_back(options_.prompt_tokens / seconds);
        session_.rewind(options_.depth);
    }
    void decode_once() {
        decode_.push_back(options_.decode_tokens / decode(options_.decode_tokens));
    }

    SpeedReport report(const Engine& engine) const {
        SpeedReport report;
        report.options = options_;
        report.threads = engine.threads();
        report.prefill_tokens_per_s = spread_of(prefill_);
        report.decode_tokens_per_s = spread_of(decode_);
        report.prefill = step_work(engine, options_.depth, options_.prompt_tokens);
        report.decode = step_work(engine, options_.depth, 1);
        report.kv_bytes = session_.kv_bytes();
        return report;
    }

    static Session filled_session(const Engine& engine, const SpeedOptions& options, int more,
                                  PrefillProgress* progress) {
        SessionOptions session_options;
        session_options.max_context = options.depth + more;
        Session session = engine.new_session(session_options);
        if (options.synthetic)
            session.fill_synthetic(options.depth, 1);
        else
            session.sync(meaningless_tokens(options.depth, engine.config().vocab_size), progress);
        return session;
    }

  private:
    static int most(const SpeedOptions& options) {
        return std::max(options.prompt_tokens, options.decode_tokens);
    }

    double decode(int tokens) {
        const double seconds = seconds_of([&] {
            for (int i = 0; i < tokens; ++i)
                session_.decode(timeline_[static_cast<std::size_t>(options_.depth + i)]);
        });
        session_.rewind(options_.depth);
        return seconds;
    }

    SpeedOptions options_;
    Session session_;
    Tokens timeline_;
    std::vector<double> prefill_, decode_;
};

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

StepWork step_work(const Engine& engine, int depth, int tokens) {
    const ModelConfig& config = engine.config();
    const KvLayout layout(config, engine.kv_type(), engine.index_kv_type());
    const double head_bytes = static_cast<double>(layout.head_bytes()) / kBlockTokens;
    const double middle = depth + 0.5 * (tokens - 1);
    StepWork work;
    work.weight_bytes = static_cast<double>(engine.weight_bytes());
    work.projection_ops =
        2.0 * (projection_weights(config) * tokens + 1.0 * config.dim * config.vocab_size);
    for (const LayerConfig& layer : config.layers) {
        const double seen = tokens_seen(config, layer, middle);
        work.attention_flops += 4.0 * config.n_heads * config.head_dim * seen * tokens;
        if (tokens == 1) work.kv_bytes += layer.n_kv_heads * head_bytes * seen;
        add_selection(engine, layout, layer, middle, tokens, work);
    }
    return work;
}

SpeedReport measure_speed(const Engine& engine, const SpeedOptions& options, SpeedPart part,
                          PrefillProgress* progress) {
    SpeedRun run(engine, options, progress);
    for (int i = 0; i < options.repetitions; ++i) {
        if (part != SpeedPart::decode) run.prefill_once();
        if (part != SpeedPart::prefill) run.decode_once();
    }
    return run.report(engine);
}

double SelectReport::decode_share() const {
    return 1 - selecting.decode_tokens_per_s.median / local.decode_tokens_per_s.median;
}

double SelectReport::prefill_share() const {
    return 1 - selecting.prefill_tokens_per_s.median / local.prefill_tokens_per_s.median;
}

SelectReport measure_select(const Engine& engine, const Engine& local, const SpeedOptions& options,
                            PrefillProgress* progress) {
    SpeedRun with(engine, options, progress);
    SpeedRun without(local, options, progress);
    for (int i = 0; i < options.repetitions; ++i) {
        for (SpeedRun* run : {&with, &without}) {
            run->prefill_once();
            run->decode_once();
        }
    }
    return {with.report(engine), without.report(local)};
}

ForkReport measure_fork(const Engine& engine, const SpeedOptions& options,
                        PrefillProgress* progress) {
    const Session session = SpeedRun::filled_session(engine, options, 1, progress);
    ForkReport report;
    report.full_blocks = options.depth / 128;
    std::vector<double> microseconds;
    for (int i = 0; i < options.repetitions; ++i) {
        std::optional<Session> branch;
        microseconds.push_back(1e6 * seconds_of([&] { branch.emplace(session.fork()); }));
        report.copied_full_blocks = std::max(report.copied_full_blocks,
                                             report.full_blocks - session.shared_blocks(*branch));
    }
    report.microseconds = spread_of(microseconds);
    return report;
}

ResumeReport measure_resume(const Engine& engine, const SpeedOptions& options,
                            const std::filesystem::path& file, PrefillProgress* progress) {
    const Session session = SpeedRun::filled_session(engine, options, 1, progress);
    const std::vector<float> logits(session.logits().begin(), session.logits().end());
    SessionOptions session_options;
    session_options.max_context = session.max_context();
    ResumeReport report;
    std::vector<double> save, load;
    for (int i = 0; i < options.repetitions; ++i) {
        std::optional<Session> loaded;
        save.push_back(seconds_of([&] { session.save(file); }));
        load.push_back(seconds_of(
            [&] { loaded.emplace(engine.load_session(file, nullptr, session_options)); }));
        report.file_bytes = std::filesystem::file_size(file);
        std::filesystem::remove(file);
        report.evaluated += loaded->sync(session.tokens()).evaluated;
        const Logits after = loaded->logits();
        report.same_logits =
            report.same_logits && std::memcmp(after.data(), logits.data(), after.size_bytes()) == 0;
    }
    report.save_seconds = spread_of(save);
    report.load_seconds = spread_of(load);
    return report;
}

double MachineRoof::least_seconds(const StepWork& work) const {
    const auto seconds = [](double amount, double giga) {
        return giga > 0 ? amount / giga / 1e9 : 0;
    };
    return std::max(seconds(work.bytes(), read_gb_per_s),
                    seconds(work.projection_ops + work.index_ops, madd_int16_gop_per_s) +
                        seconds(work.attention_flops, fma_f32_gflop_per_s));
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
