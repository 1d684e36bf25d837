#pragma once
// What an Engine and its Sessions share: packed weights, threads, workspace, KV blocks.

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "model/config.h"
#include "model/engine.h"
#include "model/kv/block_table.h"
#include "model/packed_weights.h"
#include "model/transformer.h"

namespace skein::model {

/// Threads: safe; evaluations of different sessions take turns, each using all threads.
class Runtime {
  public:
    /// Throws: Error when the model cannot be evaluated by this build or memory is exhausted.
    Runtime(ModelConfig config, const Weights& weights, const EngineOptions& options);

    const ModelConfig& config() const { return config_; }
    const CpuKernels& kernels() const { return kernels_; }
    const PackedWeights& weights() const { return weights_; }
    const KvLayout& layout() const { return *layout_; }
    int threads() const { return pool_.size(); }
    AttentionMode attention() const { return attention_; }
    const BlockPool& blocks() const { return *blocks_; }
    std::size_t blocks_in_use() const { return blocks_->blocks_in_use(); }
    int prefill_chunk() const { return prefill_chunk_; }

    /// Names the arithmetic; equal versions give equal bits for equal weights.
    std::string numerics_version() const;

    BlockTable new_table() const { return {layout_, blocks_}; }
    /// See Transformer::forward. Requires: at most max_batch_tokens() tokens in all.
    void evaluate(std::span<const Sequence> sequences);
    /// Writes pseudo-random keys, values and index keys of unit variance for the positions
    /// [first, last). Requires: as BlockTable::writable_block.
    void fill_synthetic(BlockTable& table, int first, int last, std::uint64_t seed);
    /// What bounds have saved in all decoding so far.
    BoundedPages bounded_pages();
    int max_batch_tokens() const { return workspace_.max_tokens; }

  private:
    ModelConfig config_;
    const CpuKernels& kernels_;
    int prefill_chunk_;
    ThreadPool pool_;
    PackedWeights weights_;
    Transformer transformer_;
    std::shared_ptr<const KvLayout> layout_;
    std::shared_ptr<BlockPool> blocks_;
    AttentionMode attention_;
    std::mutex mutex_;  ///< guards the pool and the workspace
    Workspace workspace_;
};

/// AttentionMode::local. Throws: Error when no layer is sparse.
void keep_local_blocks(ModelConfig& config);
/// Turns dense attention into AttentionMode::retrofit. Throws: Error when a layer is sparse.
void retrofit(ModelConfig& config);

/// See Engine::load_session.
Session load_session(std::shared_ptr<Runtime> runtime, const std::filesystem::path& path,
                     int max_context, ChoiceRecording recording, std::vector<std::byte>* extra);

/// A session without tokens.
Session make_session(std::shared_ptr<Runtime> runtime, int max_context,
                     ChoiceRecording recording = ChoiceRecording::digest);

}  // namespace skein::model
