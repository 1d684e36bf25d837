#include "model/engine.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "model/hash.h"
#include "model/load/model_file.h"
#include "model/load/weights.h"
#include "model/runtime.h"

namespace skein::model {
namespace {

constexpr int kMostThreads = 256;

int cores_of_this_process() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) > 0)
        return CPU_COUNT(&cores);
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int checked_threads(int threads) {
    if (threads < 0 || threads > kMostThreads)
        throw Error(
            fmt::format("engine option threads: expected 0 to {}, got {}", kMostThreads, threads));
    return threads == 0 ? std::min(cores_of_this_process(), kMostThreads) : threads;
}

int checked_chunk(int tokens) {
    constexpr int kMost = 8192;
    if (tokens < 1 || tokens > kMost)
        throw Error(
            fmt::format("engine option prefill_chunk: expected 1 to {}, got {}", kMost, tokens));
    return tokens;
}

KvType checked_kv(KvType type) {
    if (type == KvType::int13)
        throw Error(
            "engine option kv: int13 is for index keys; expected f32, f16, bf16, int16 or int8");
    return type;
}

std::size_t kv_limit(std::size_t asked) {
    if (asked != 0) return asked;
    const auto pages = static_cast<std::size_t>(std::max(1L, sysconf(_SC_PHYS_PAGES)));
    const auto page = static_cast<std::size_t>(std::max(1L, sysconf(_SC_PAGESIZE)));
    return pages * page / 4 * 3;
}

class LoadedEngine final : public Engine {
  public:
    LoadedEngine(const ModelFile& file, const EngineOptions& options)
        : path_(file.path()),
          chat_template_(file.chat_template()),
          tokenizer_(file.vocabulary()),
          runtime_(make_runtime(file, options)) {}

    Session new_session(const SessionOptions& options) const override {
        return make_session(runtime_, checked_context(options), options.choices);
    }
    Session load_session(const std::filesystem::path& path, std::vector<std::byte>* extra,
                         const SessionOptions& options) const override {
        return model::load_session(runtime_, path, checked_context(options), options.choices,
                                   extra);
    }
    int checked_context(const SessionOptions& options) const {
        const int most = config().max_context;
        const int tokens = options.max_context == 0 ? most : options.max_context;
        if (tokens < 1 || tokens > most)
            throw Error(
                fmt::format("session option max_context: expected 1 to {} (what the model was "
                            "trained for), got {}",
                            most, tokens));
        return tokens;
    }
    const ModelConfig& config() const override { return runtime_->config(); }
    const Tokenizer& tokenizer() const override { return tokenizer_; }
    const std::string& chat_template() const override { return chat_template_; }
    const std::filesystem::path& path() const override { return path_; }
    int threads() const override { return runtime_->threads(); }
    Isa isa() const override { return runtime_->kernels().isa; }
    std::string numerics_version() const override { return runtime_->numerics_version(); }
    AttentionMode attention() const override { return runtime_->attention(); }
    KvType kv_type() const override { return runtime_->layout().type(); }
    KvType index_kv_type() const override { return runtime_->layout().index_type(); }
    std::size_t kv_memory_bytes() const override { return runtime_->blocks().memory_bytes(); }
    std::size_t kv_spilled_bytes() const override { return runtime_->blocks().spilled_bytes(); }
    std::size_t weight_bytes() const override { return runtime_->weights().bytes_per_token; }
    std::size_t kv_bytes_per_token() const override {
        return runtime_->layout().block_bytes() / kBlockTokens;
    }

  private:
    static std::shared_ptr<Runtime> make_runtime(const ModelFile& file, EngineOptions options) {
        ModelConfig config =
            file.config({.dense_approximation = options.attention == AttentionMode::dense});
        if (options.attention == AttentionMode::dense && !config.dense_approximation)
            options.attention = AttentionMode::model;
        if (options.attention == AttentionMode::local) keep_local_blocks(config);
        const Weights weights = bind_weights(file, config);
        return std::make_shared<Runtime>(std::move(config), weights, options);
    }

    std::filesystem::path path_;
    std::string chat_template_;
    Tokenizer tokenizer_;
    std::shared_ptr<Runtime> runtime_;
};

}  // namespace

Runtime::Runtime(ModelConfig config, const Weights& weights, const EngineOptions& options)
    : config_(std::move(config)),
      kernels_(select_kernels(options.isa)),
      prefill_chunk_(checked_chunk(options.prefill_chunk)),
      pool_(checked_threads(options.threads)),
      weights_(pack_weights(config_, weights, pool_)),
      transformer_(config_, weights_, kernels_, pool_),
      layout_(std::make_shared<KvLayout>(config_, checked_kv(options.kv), options.index_kv)),
      blocks_(BlockPool::make(
          layout_->block_bytes(),
          {kv_limit(options.kv_bytes_max), options.kv_spill_folder, options.kv_spill_bytes_max})),
      attention_(options.attention),
      workspace_(config_, weights_, std::max(prefill_chunk_, kMostBatchedSessions)) {}

void Runtime::evaluate(std::span<const Sequence> sequences) {
    const std::lock_guard lock(mutex_);
    transformer_.forward(sequences, workspace_);
}

void keep_local_blocks(ModelConfig& config) {
    const bool sparse =
        std::any_of(config.layers.begin(), config.layers.end(),
                    [](const LayerConfig& layer) { return layer.attention == AttentionKind::msa; });
    if (!sparse)
        throw Error(
            "engine option attention: 'local' is a control for models with sparse layers; "
            "this one has none, use 'model'");
    config.msa.local_blocks = config.msa.top_k;
}

void retrofit(ModelConfig& config) {
    for (LayerConfig& layer : config.layers) {
        if (layer.attention != AttentionKind::dense)
            throw Error(
                "engine option attention: 'retrofit' is for models trained with dense "
                "attention; this one has sparse layers, use 'model'");
        layer.attention = AttentionKind::retrofit;
    }
    config.msa.block_tokens = kBlockTokens;
    config.msa.top_k = 16;
    config.msa.init_blocks = 1;
    config.msa.local_blocks = 4;
    config.max_context = 1 << 20;
}

std::string Runtime::numerics_version() const {
    std::string version = "skein-cpu-1";
    if (layout_->type() != KvType::int16)
        version += std::string("-kv-") + kv_type_name(layout_->type());
    const bool sparse = layout_->index_dim() > 0;
    if (sparse && layout_->index_type() != KvType::int13)
        version += std::string("-index-") + kv_type_name(layout_->index_type());
    if (attention_ != AttentionMode::model)
        version += std::string("-attention-") + attention_mode_name(attention_);
    return version;
}

BoundedPages Runtime::bounded_pages() {
    const std::lock_guard lock(mutex_);
    return workspace_.attention.filter;
}

void Runtime::fill_synthetic(BlockTable& table, int first, int last, std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    const int head_dim = layout_->head_dim();
    pool_.parallel_for(last - first, kBlockTokens, [&](int begin, int end) {
        std::vector<float> key(static_cast<std::size_t>(head_dim));
        std::vector<float> value(key.size());
        std::vector<float> index(static_cast<std::size_t>(layout_->index_dim()));
        std::uint64_t state = seed + static_cast<std::uint64_t>(first + begin) * 0x10001;
        const auto randomise = [&](std::vector<float>& values) {
            // Uniform in +-sqrt(3): unit variance, like a normed key.
            for (float& x : values)
                x = static_cast<float>(static_cast<std::int32_t>(next_random(state) >> 32U)) *
                    (1.7320508F / 2147483648.0F);
        };
        for (int position = first + begin; position < first + end; ++position) {
            std::byte* block = table.writable_block(position);
            const int token = position % kBlockTokens;
            for (int layer = 0; layer < layout_->n_layers(); ++layer) {
                for (int head = 0; head < layout_->n_kv_heads(layer); ++head) {
                    randomise(key);
                    randomise(value);
                    layout_->store(kernels_, block, layer, head, token, key.data(), value.data());
                }
                if (!layout_->has_index(layer)) continue;
                randomise(index);
                layout_->store_index(kernels_, block, layer, token, index.data());
            }
        }
    });
    transformer_.seal(table, first, last);
}

const char* attention_mode_name(AttentionMode mode) {
    constexpr const char* kNames[] = {"model", "dense", "local", "retrofit"};
    return kNames[static_cast<int>(mode)];
}

std::shared_ptr<const Engine> Engine::load(const std::filesystem::path& path,
                                           const EngineOptions& options) {
    const std::unique_ptr<ModelFile> file = open_model_file(path);
    try {
        return std::make_shared<LoadedEngine>(*file, options);
    } catch (const std::bad_alloc&) {
        throw Error(fmt::format("{}: out of memory while preparing the weights", path.string()));
    }
}

}  // namespace skein::model
