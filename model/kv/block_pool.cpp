#include "model/kv/block_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "model/error.h"

namespace skein::model {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{32} << 20U;
constexpr std::size_t kPage = 4096;

/// A file without a name. Throws: Error naming the folder.
int open_nameless(const std::filesystem::path& folder) {
    const int nameless = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (nameless >= 0) return nameless;
    // Some file systems have no nameless files: make one and take its name away.
    std::string pattern = (folder / "skein-kv-XXXXXX").string();
    const int file = mkostemp(pattern.data(), O_CLOEXEC);
    if (file < 0)
        throw Error(fmt::format("KV file: cannot create a file in '{}': {}", folder.string(),
                                std::strerror(errno)));
    unlink(pattern.c_str());
    return file;
}

}  // namespace

BlockPool::BlockPool(std::size_t block_bytes, BlockPoolOptions options)
    : block_bytes_(block_bytes), options_(std::move(options)) {}

std::shared_ptr<BlockPool> BlockPool::make(std::size_t block_bytes, BlockPoolOptions options) {
    return std::shared_ptr<BlockPool>(new BlockPool(block_bytes, std::move(options)));
}

BlockPool::~BlockPool() {
    for (const FileSlab& slab : file_slabs_) munmap(slab.data, slab.bytes);
    if (file_ >= 0) close(file_);
}

BlockRef BlockPool::acquire() {
    FreeBlock block{};
    {
        const std::lock_guard lock(mutex_);
        if (free_.empty() && free_spilled_.empty()) add_slab();
        std::vector<FreeBlock>& from = free_.empty() ? free_spilled_ : free_;
        block = from.back();
        from.pop_back();
        ++in_use_;
    }
    const auto pool = shared_from_this();
    return {block.data,
            [pool, spilled = block.spilled](std::byte* data) { pool->give_back(data, spilled); }};
}

void BlockPool::add_slab() {
    const std::size_t wanted = std::max<std::size_t>(1, kSlabBytes / block_bytes_);
    const std::size_t fitting = options_.bytes_max / block_bytes_;
    const std::size_t room = fitting > memory_blocks_ ? fitting - memory_blocks_ : 0;
    if (room > 0) return add_memory_slab(std::min(wanted, room));
    if (!options_.spill_folder.empty()) return add_file_slab(wanted);
    throw Error(
        fmt::format("out of KV memory: {} blocks of {} bytes (128 tokens each) are in use and the "
                    "limit is {} bytes; end or shorten a session, raise kv_bytes_max, or name a "
                    "kv_spill_folder",
                    in_use_, block_bytes_, options_.bytes_max));
}

void BlockPool::add_memory_slab(std::size_t blocks) {
    slabs_.emplace_back(blocks * block_bytes_, "KV blocks");
    memory_blocks_ += blocks;
    cut(slabs_.back().data(), blocks, false);
}

void BlockPool::add_file_slab(std::size_t blocks) {
    const std::size_t limit = options_.spill_bytes_max / block_bytes_;
    if (options_.spill_bytes_max != 0) {
        if (file_blocks_ >= limit)
            throw Error(
                fmt::format("out of KV space: the file in '{}' holds {} blocks of {} bytes "
                            "and its limit is {} bytes",
                            options_.spill_folder.string(), file_blocks_, block_bytes_,
                            options_.spill_bytes_max));
        blocks = std::min(blocks, limit - file_blocks_);
    }
    if (file_ < 0) file_ = open_nameless(options_.spill_folder);
    std::size_t begin = 0;
    for (const FileSlab& slab : file_slabs_) begin += slab.bytes;
    const std::size_t bytes = (blocks * block_bytes_ + kPage - 1) / kPage * kPage;
    // Reserved, so that a full disk is an error here and not a fault while writing.
    const int refused =
        posix_fallocate(file_, static_cast<off_t>(begin), static_cast<off_t>(bytes));
    if (refused != 0)
        throw Error(fmt::format("KV file: cannot reserve {} more bytes in '{}': {}", bytes,
                                options_.spill_folder.string(), std::strerror(refused)));
    void* data =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(begin));
    if (data == MAP_FAILED)
        throw Error(fmt::format("KV file: cannot map {} bytes: {}", bytes, std::strerror(errno)));
    file_slabs_.push_back({static_cast<std::byte*>(data), bytes});
    file_blocks_ += blocks;
    cut(static_cast<std::byte*>(data), blocks, true);
}

void BlockPool::cut(std::byte* slab, std::size_t blocks, bool spilled) {
    std::vector<FreeBlock>& list = spilled ? free_spilled_ : free_;
    // Room for every block to come back: give_back must not allocate.
    list.reserve(spilled ? file_blocks_ : memory_blocks_);
    for (std::size_t i = blocks; i-- > 0;) list.push_back({slab + i * block_bytes_, spilled});
}

BlockRef BlockPool::copy(const BlockRef& from,
                         const std::function<void(const std::byte*, std::byte*)>& copy) {
    BlockRef to = acquire();
    // Under the mutex, so that sole_reference() comes after every copy of a reference it no longer
    // counts; the reference count itself orders nothing for whoever reads it.
    const std::lock_guard lock(mutex_);
    copy(from.get(), to.get());
    return to;
}

bool BlockPool::sole_reference(const BlockRef& block) const {
    const std::lock_guard lock(mutex_);
    return block.use_count() == 1;
}

void BlockPool::give_back(std::byte* block, bool spilled) {
    const std::lock_guard lock(mutex_);
    (spilled ? free_spilled_ : free_).push_back({block, spilled});
    --in_use_;
}

std::size_t BlockPool::blocks_in_use() const {
    const std::lock_guard lock(mutex_);
    return in_use_;
}

std::size_t BlockPool::memory_bytes() const {
    const std::lock_guard lock(mutex_);
    return memory_blocks_ * block_bytes_;
}

std::size_t BlockPool::spilled_bytes() const {
    const std::lock_guard lock(mutex_);
    return file_blocks_ * block_bytes_;
}

}  // namespace skein::model
