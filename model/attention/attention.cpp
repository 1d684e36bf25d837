#include "model/attention/attention.h"

#include <algorithm>
#include <array>

namespace skein::model {
namespace {

constexpr int kListToShare = 64;  // folding fewer blocks is not worth waking a thread

/// The keys and values that the item after this one reads.
Ahead next_part(const AttentionCall& call, const BlockLists& lists, int item) {
    // Smaller blocks than a page are parts of its strips: not worth it.
    if (lists.block_tokens != kBlockTokens || item >= lists.count * call.n_kv_heads()) return {};
    const int kv_head = item / lists.count;
    const int list = lists.per_head ? kv_head * lists.count : 0;
    const int begin = lists.begins[list + item % lists.count];
    const KvLayout& layout = call.table->layout();
    return {call.table->block(begin / kBlockTokens) + layout.keys(call.layer, kv_head),
            layout.head_bytes()};
}

void attend_part(const AttentionCall& call, const BlockLists& lists, const CpuKernels& kernels,
                 int item, AttentionScratch& scratch) {
    const int kv_head = item / lists.count;
    const int list = lists.per_head ? kv_head * lists.count : 0;
    const int begin = lists.begins[list + item % lists.count];
    std::array<int, kMostAttendRows> visible{};
    visible.fill(std::min(lists.block_tokens, call.start + 1 - begin));
    const int group = call.group();
    const int head_dim = call.head_dim();
    for (int row = 0; row < group; row += kMostAttendRows) {
        AttentionBlock block = block_view(call, kv_head, begin);
        const std::ptrdiff_t part = static_cast<std::ptrdiff_t>(item) * group + row;
        block.n_rows = std::min(kMostAttendRows, group - row);
        block.queries =
            call.queries + static_cast<std::ptrdiff_t>(kv_head * group + row) * head_dim;
        block.visible = visible.data();
        block.maximum = scratch.maximum.data() + part;
        block.total = scratch.total.data() + part;
        block.weighted = scratch.weighted.data() + part * head_dim;
        if (row == 0) block.ahead = next_part(call, lists, item + 1);
        kernels.attend(block);
    }
}

/// One query head's results of all blocks, folded in ascending order.
void fold_parts(const AttentionCall& call, int count, const CpuKernels& kernels, int head,
                const AttentionScratch& scratch) {
    const int head_dim = call.head_dim();
    const int group = call.group();
    float maximum = kMinusInfinity;
    float total = 0.0F;
    float* out = call.out + static_cast<std::ptrdiff_t>(head) * head_dim;
    std::fill_n(out, head_dim, 0.0F);
    for (int i = 0; i < count; ++i) {
        const std::ptrdiff_t part =
            static_cast<std::ptrdiff_t>(head / group * count + i) * group + head % group;
        kernels.merge(maximum, total, out, scratch.maximum[static_cast<std::size_t>(part)],
                      scratch.total[static_cast<std::size_t>(part)],
                      scratch.weighted.data() + part * head_dim, head_dim);
    }
    kernels.finish(out, total, head_dim, out);
}

}  // namespace

AttentionBlock block_view(const AttentionCall& call, int kv_head, int begin) {
    const KvLayout& layout = call.table->layout();
    const std::byte* memory = call.table->block(begin / kBlockTokens);
    const auto first = static_cast<std::size_t>(begin % kBlockTokens);
    const std::byte* keys = memory + layout.keys(call.layer, kv_head);
    const std::byte* values = memory + layout.values(call.layer, kv_head);
    AttentionBlock block;
    block.type = layout.type();
    block.keys = keys;
    block.values = values;
    block.first = begin % kBlockTokens;
    block.head_dim = layout.head_dim();
    if (has_scales(layout.type())) {
        block.key_scales = reinterpret_cast<const float*>(keys + layout.scales_offset()) + first;
        block.value_scales =
            reinterpret_cast<const float*>(values + layout.scales_offset()) + first;
    }
    return block;
}

void widen_block(const CpuKernels& kernels, AttentionBlock& block, float* keys, float* values) {
    if (block.type == KvType::f32) return;
    const int elements = block.head_dim * kBlockTokens;
    kernels.widen(block.type, block.keys, elements, keys);
    kernels.widen(block.type, block.values, elements, values);
    block.type = KvType::f32;
    block.keys = reinterpret_cast<const std::byte*>(keys);
    block.values = reinterpret_cast<const std::byte*>(values);
}

void attend_token(const AttentionCall& call, const BlockLists& lists, const CpuKernels& kernels,
                  ThreadPool& pool, AttentionScratch& scratch) {
    const int head_dim = call.head_dim();
    const auto parts =
        static_cast<std::size_t>(lists.count) * static_cast<std::size_t>(call.n_heads);
    if (scratch.total.size() < parts) {
        scratch.maximum.resize(parts);
        scratch.total.resize(parts);
        scratch.weighted.resize(parts * static_cast<std::size_t>(head_dim));
    }
    // All (KV head, block) pairs in parallel, then one fold a query head.
    const int items = lists.count * call.n_kv_heads();
    pool.parallel_for(items, pool.grain_for(items, 2), [&](int begin, int end) {
        for (int item = begin; item < end; ++item) attend_part(call, lists, kernels, item, scratch);
    });
    const int grain = lists.count < kListToShare ? call.n_heads : 1;
    pool.parallel_for(call.n_heads, grain, [&](int begin, int end) {
        for (int head = begin; head < end; ++head)
            fold_parts(call, lists.count, kernels, head, scratch);
    });
}

}  // namespace skein::model
