#include "model/kv/block_table.h"

#include <algorithm>
#include <utility>

#include "model/expect.h"

namespace skein::model {
namespace {

std::size_t blocks_for(int tokens) {
    return static_cast<std::size_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

}  // namespace

BlockTable::BlockTable(std::shared_ptr<const KvLayout> layout, std::shared_ptr<BlockPool> pool)
    : layout_(std::move(layout)), pool_(std::move(pool)) {}

void BlockTable::reserve(int tokens) {
    std::vector<BlockRef> added;
    for (std::size_t i = blocks_.size(); i < blocks_for(tokens); ++i)
        added.push_back(pool_->acquire());
    evicted_.reserve(blocks_.size() + added.size());
    blocks_.insert(blocks_.end(), added.begin(), added.end());
    evicted_.resize(blocks_.size());
}

void BlockTable::advance(int tokens) {
    expect(tokens >= size_ && blocks_for(tokens) <= blocks_.size(),
           "advance within the reservation");
    size_ = tokens;
}

void BlockTable::truncate(int tokens) {
    expect(tokens >= 0 && tokens <= size_, "truncate to a stored position");
    const std::size_t kept = blocks_for(tokens);
    const int in_last = tokens % kBlockTokens;
    // The last block kept was full before and is open now: others that share it keep the old one.
    const bool was_full = in_last != 0 && static_cast<int>(kept) * kBlockTokens <= size_;
    if (was_full && !pool_->sole_reference(blocks_[kept - 1]))
        blocks_[kept - 1] = copy_of(blocks_[kept - 1], in_last);
    blocks_.resize(kept);
    // The page that is open now may have been evicted; a token always sees its own page.
    if (kept > 0) set_evicted(static_cast<int>(kept) - 1, static_cast<int>(evicted_.size()), false);
    evicted_.assign(evicted_.begin(), evicted_.begin() + static_cast<std::ptrdiff_t>(kept));
    n_evicted_ = static_cast<int>(std::count(evicted_.begin(), evicted_.end(), 1));
    size_ = tokens;
}

void BlockTable::load(int tokens, std::span<const std::uint8_t> evicted,
                      const std::function<void(int, std::byte*)>& fill) {
    truncate(0);
    reserve(tokens);
    try {
        for (int index = 0; index < n_blocks(); ++index)
            fill(index, blocks_[static_cast<std::size_t>(index)].get());
    } catch (...) {
        truncate(0);
        throw;
    }
    advance(tokens);
    for (int page = 0; page < static_cast<int>(evicted.size()); ++page)
        if (evicted[static_cast<std::size_t>(page)] != 0) set_evicted(page, page + 1, true);
}

void BlockTable::evict(int first, int last) {
    expect(size_ > 0 && last <= (size_ - 1) / kBlockTokens, "only pages before the open one");
    set_evicted(first, last, true);
}

void BlockTable::restore(int first, int last) {
    set_evicted(first, last, false);
}

void BlockTable::set_evicted(int first, int last, bool evicted) {
    expect(first >= 0 && first <= last && last <= static_cast<int>(evicted_.size()),
           "a range of pages");
    for (int page = first; page < last; ++page) {
        std::uint8_t& flag = evicted_[static_cast<std::size_t>(page)];
        n_evicted_ += static_cast<int>(evicted) - flag;
        flag = evicted ? 1 : 0;
    }
}

BlockTable BlockTable::fork() const {
    BlockTable other(layout_, pool_);
    other.blocks_.assign(blocks_.begin(),
                         blocks_.begin() + static_cast<std::ptrdiff_t>(blocks_for(size_)));
    const int in_last = size_ % kBlockTokens;
    if (in_last != 0) other.blocks_.back() = copy_of(other.blocks_.back(), in_last);
    other.evicted_.assign(evicted_.begin(),
                          evicted_.begin() + static_cast<std::ptrdiff_t>(other.blocks_.size()));
    other.n_evicted_ = n_evicted_;
    other.size_ = size_;
    return other;
}

const std::byte* BlockTable::block(int index) const {
    return blocks_[static_cast<std::size_t>(index)].get();
}

std::byte* BlockTable::writable_block(int position) {
    expect(position >= size_ && blocks_for(position + 1) <= blocks_.size(),
           "only reserved positions that are not stored yet are written");
    return blocks_[static_cast<std::size_t>(position / kBlockTokens)].get();
}

int BlockTable::shared_blocks(const BlockTable& other) const {
    const auto [mine, theirs] =
        std::mismatch(blocks_.begin(), blocks_.end(), other.blocks_.begin(), other.blocks_.end());
    return static_cast<int>(mine - blocks_.begin());
}

BlockRef BlockTable::copy_of(const BlockRef& block, int tokens) const {
    return pool_->copy(
        block, [&](const std::byte* from, std::byte* to) { layout_->copy_head(from, to, tokens); });
}

}  // namespace skein::model
