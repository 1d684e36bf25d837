#include "model/kv/block_pool.h"

#include <fmt/format.h>

#include "model/error.h"

namespace skein::model {

BlockPool::BlockPool(std::size_t block_bytes, std::size_t bytes_max)
    : block_bytes_(block_bytes), bytes_max_(bytes_max) {}

std::shared_ptr<BlockPool> BlockPool::make(std::size_t block_bytes, std::size_t bytes_max) {
    return std::shared_ptr<BlockPool>(new BlockPool(block_bytes, bytes_max));
}

BlockRef BlockPool::acquire() {
    std::unique_ptr<HugeBuffer> buffer;
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            buffer = std::move(free_.back());
            free_.pop_back();
        } else if ((in_use_ + 1) * block_bytes_ > bytes_max_) {
            throw Error(
                fmt::format("out of KV memory: {} blocks of {} bytes (128 tokens each) are in use "
                            "and the limit is "
                            "{} bytes; end or shorten a session, or raise kv_bytes_max",
                            in_use_, block_bytes_, bytes_max_));
        }
        // Room for every block to come back: give_back must not allocate.
        free_.reserve(free_.size() + in_use_ + 1);
        ++in_use_;
    }
    if (!buffer) buffer = allocate();
    const auto pool = shared_from_this();
    return BlockRef(buffer.release(), [pool](HugeBuffer* block) { pool->give_back(block); });
}

std::unique_ptr<HugeBuffer> BlockPool::allocate() {
    try {
        return std::make_unique<HugeBuffer>(block_bytes_, "a KV block");
    } catch (...) {
        const std::lock_guard lock(mutex_);
        --in_use_;
        throw;
    }
}

BlockRef BlockPool::copy(const BlockRef& from,
                         const std::function<void(const std::byte*, std::byte*)>& copy) {
    BlockRef to = acquire();
    // Under the mutex, so that sole_reference() comes after every copy of a reference it no longer
    // counts; the reference count itself orders nothing for whoever reads it.
    const std::lock_guard lock(mutex_);
    copy(from->data(), to->data());
    return to;
}

bool BlockPool::sole_reference(const BlockRef& block) const {
    const std::lock_guard lock(mutex_);
    return block.use_count() == 1;
}

void BlockPool::give_back(HugeBuffer* buffer) {
    const std::lock_guard lock(mutex_);
    free_.emplace_back(buffer);
    --in_use_;
}

std::size_t BlockPool::blocks_in_use() const {
    const std::lock_guard lock(mutex_);
    return in_use_;
}

}  // namespace skein::model
