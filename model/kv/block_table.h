#pragma once
// One timeline's view of the KV cache: which block holds which 128 tokens.
//
// Full blocks are immutable while they are shared with other timelines; only the last, open block
// is written, and it belongs to one timeline alone. Rewinding into a shared block therefore copies
// the part that stays.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/kv/block_pool.h"
#include "model/kv/kv_layout.h"

namespace skein::model {

class BlockTable {
  public:
    BlockTable(std::shared_ptr<const KvLayout> layout, std::shared_ptr<BlockPool> pool);

    int size() const { return size_; }  ///< tokens whose keys and values are stored in all layers
    /// Blocks that hold tokens; n_blocks() also counts those reserved.
    int used_blocks() const { return (size_ + kBlockTokens - 1) / kBlockTokens; }
    int n_blocks() const { return static_cast<int>(blocks_.size()); }
    const KvLayout& layout() const { return *layout_; }

    /// Makes room for the tokens up to `tokens`; the table is unchanged when this throws.
    void reserve(int tokens);
    /// Declares the tokens below `tokens` stored. Requires: reserved, tokens >= size().
    void advance(int tokens);
    /// Forgets the tokens from `tokens` on. Requires: tokens <= size(). Throws: Error, with the
    /// table unchanged, when a shared block has to be copied and memory is exhausted.
    void truncate(int tokens);
    /// Replaces everything by `tokens` tokens of which `fill(index, block)` writes each block.
    /// Throws: as reserve, or what `fill` throws; the table is empty then.
    void load(int tokens, std::span<const std::uint8_t> evicted,
              const std::function<void(int index, std::byte* block)>& fill);
    /// Takes the pages [first, last) out of every later attention; they stay stored, so that a
    /// rewind to before them or a `restore` brings them back. The open page cannot be evicted.
    /// Requires: 0 <= first <= last <= (size() - 1) / 128.
    void evict(int first, int last);
    void restore(int first, int last);  ///< undoes evict; requires: as evict
    bool evicted(int page) const { return evicted_[static_cast<std::size_t>(page)] != 0; }
    /// One flag a page. Valid until the table changes.
    std::span<const std::uint8_t> evicted_pages() const { return evicted_; }
    bool any_evicted() const { return n_evicted_ > 0; }
    /// A table over the same tokens: shares the full blocks, copies the open one.
    BlockTable fork() const;

    const std::byte* block(int index) const;
    /// The memory of a position that is not stored yet. Requires: reserved, position >= size().
    std::byte* writable_block(int position);
    std::size_t bytes() const { return blocks_.size() * pool_->block_bytes(); }
    /// How many leading blocks both tables share.
    int shared_blocks(const BlockTable& other) const;

  private:
    BlockRef copy_of(const BlockRef& block, int tokens) const;

    std::shared_ptr<const KvLayout> layout_;
    std::shared_ptr<BlockPool> pool_;
    void set_evicted(int first, int last, bool evicted);

    std::vector<BlockRef> blocks_;
    std::vector<std::uint8_t> evicted_;  ///< one flag a block
    int n_evicted_ = 0;
    int size_ = 0;
};

}  // namespace skein::model
