#pragma once
// Owner of all KV blocks of an engine.

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "model/cpu/huge_buffer.h"

namespace skein::model {

/// Keys and values of 128 tokens. Shared between timelines once it is full, and never written then.
using BlockRef = std::shared_ptr<HugeBuffer>;

/// Hands out blocks and takes them back when their last reference goes; a returned block is reused
/// before new memory is asked for. Blocks may outlive their pool object's last other owner.
/// Threads: safe.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
  public:
    /// `bytes_max` bounds the memory of all blocks together.
    static std::shared_ptr<BlockPool> make(std::size_t block_bytes, std::size_t bytes_max);

    /// Contents are unspecified. Throws: Error when bytes_max or the system's memory is exhausted.
    BlockRef acquire();

    /// A new block with what `copy` takes over from `from`. Throws: as acquire.
    BlockRef copy(const BlockRef& from,
                  const std::function<void(const std::byte* from, std::byte* to)>& copy);
    /// Whether this is the only reference, so that the block may be written again. Every copy that
    /// another timeline made before it let go of the block has ended then.
    bool sole_reference(const BlockRef& block) const;

    std::size_t block_bytes() const { return block_bytes_; }
    std::size_t blocks_in_use() const;

  private:
    BlockPool(std::size_t block_bytes, std::size_t bytes_max);
    std::unique_ptr<HugeBuffer> allocate();
    void give_back(HugeBuffer* buffer);

    std::size_t block_bytes_;
    std::size_t bytes_max_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<HugeBuffer>> free_;
    std::size_t in_use_ = 0;
};

}  // namespace skein::model
