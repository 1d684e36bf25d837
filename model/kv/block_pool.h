#pragma once
// Owner of all KV blocks of an engine, in memory and, beyond a limit, in a mapped file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "model/cpu/huge_buffer.h"

namespace skein::model {

/// Keys and values of 128 tokens. Shared between timelines once it is full, and never written then.
using BlockRef = std::shared_ptr<std::byte>;

struct BlockPoolOptions {
    std::size_t bytes_max = 0;  ///< memory of all blocks together
    /// Where blocks go that memory has no room for; empty: nowhere. The file has no name (it is
    /// gone when the process is), its space is reserved before it is used, and the system keeps
    /// what is in use in memory.
    std::filesystem::path spill_folder;
    std::size_t spill_bytes_max = 0;  ///< of the file; 0: what the disk has free
};

/// Hands out blocks and takes them back when their last reference goes; a returned block is reused
/// before new memory is asked for. Blocks may outlive their pool object's last other owner.
/// Threads: safe.
class BlockPool : public std::enable_shared_from_this<BlockPool> {
  public:
    static std::shared_ptr<BlockPool> make(std::size_t block_bytes, BlockPoolOptions options);
    ~BlockPool();

    /// Contents are unspecified. Throws: Error when the limits, the system's memory or the disk
    /// are exhausted.
    BlockRef acquire();

    /// A new block with what `copy` takes over from `from`. Throws: as acquire.
    BlockRef copy(const BlockRef& from,
                  const std::function<void(const std::byte* from, std::byte* to)>& copy);
    /// Whether this is the only reference, so that the block may be written again. Every copy that
    /// another timeline made before it let go of the block has ended then.
    bool sole_reference(const BlockRef& block) const;

    std::size_t block_bytes() const { return block_bytes_; }
    std::size_t blocks_in_use() const;
    std::size_t memory_bytes() const;   ///< reserved for blocks in memory
    std::size_t spilled_bytes() const;  ///< reserved for blocks in the file

  private:
    /// Blocks are cut from slabs, so that small ones share huge pages.
    struct FileSlab {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
    };
    BlockPool(std::size_t block_bytes, BlockPoolOptions options);
    void add_memory_slab(std::size_t blocks);
    void add_file_slab(std::size_t blocks);
    void add_slab();
    void cut(std::byte* slab, std::size_t blocks, bool spilled);
    void give_back(std::byte* block, bool spilled);

    struct FreeBlock {
        std::byte* data;
        bool spilled;
    };
    const std::size_t block_bytes_;
    const BlockPoolOptions options_;
    mutable std::mutex mutex_;
    std::vector<HugeBuffer> slabs_;
    std::vector<FileSlab> file_slabs_;
    std::vector<FreeBlock> free_;          ///< in memory
    std::vector<FreeBlock> free_spilled_;  ///< in the file; used last
    int file_ = -1;
    std::size_t memory_blocks_ = 0, file_blocks_ = 0, in_use_ = 0;
};

}  // namespace skein::model
