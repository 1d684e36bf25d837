#include "model/attention/dense.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace skein::model {
namespace {

constexpr int kTileRows = 48;  // query rows that pass over the blocks together
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Shape {
    int head_dim, n_kv_heads, group;  // group: query heads that share a KV head
    std::ptrdiff_t token_stride;
};

Shape shape_of(const DenseAttention& call) {
    const KvLayout& layout = call.table->layout();
    const int n_kv_heads = layout.n_kv_heads(call.layer);
    return {layout.head_dim(), n_kv_heads, call.n_heads / n_kv_heads,
            static_cast<std::ptrdiff_t>(call.n_heads) * layout.head_dim()};
}

AttentionBlock block_view(const DenseAttention& call, int kv_head, int index) {
    const KvLayout& layout = call.table->layout();
    const std::byte* memory = call.table->block(index);
    AttentionBlock block;
    block.type = layout.type();
    block.keys = memory + layout.keys(call.layer, kv_head);
    block.values = memory + layout.values(call.layer, kv_head);
    block.head_dim = layout.head_dim();
    if (layout.type() == KvType::int16) {
        block.key_scales = reinterpret_cast<const float*>(block.keys + layout.scales_offset());
        block.value_scales = reinterpret_cast<const float*>(block.values + layout.scales_offset());
    }
    return block;
}

// ---------------------------------------------------------------- one token

/// All (KV head, block) pairs in parallel, then one fold a query head.
void attend_one(const DenseAttention& call, const CpuKernels& kernels, ThreadPool& pool,
                AttentionScratch& scratch) {
    const Shape shape = shape_of(call);
    const int n_blocks = call.start / kBlockTokens + 1;
    const auto parts = static_cast<std::size_t>(n_blocks) * static_cast<std::size_t>(call.n_heads);
    if (scratch.total.size() < parts) {
        scratch.maximum.resize(parts);
        scratch.total.resize(parts);
        scratch.weighted.resize(parts * static_cast<std::size_t>(shape.head_dim));
    }
    const int items = n_blocks * shape.n_kv_heads;
    pool.parallel_for(items, pool.grain_for(items, 2), [&](int begin, int end) {
        for (int item = begin; item < end; ++item) {
            const int kv_head = item / n_blocks;
            const int index = item % n_blocks;
            std::array<int, kTileRows> visible{};
            visible.fill(std::min(kBlockTokens, call.start + 1 - index * kBlockTokens));
            for (int row = 0; row < shape.group; row += kTileRows) {
                AttentionBlock block = block_view(call, kv_head, index);
                const std::ptrdiff_t part = static_cast<std::ptrdiff_t>(item) * shape.group + row;
                block.n_rows = std::min(kTileRows, shape.group - row);
                block.queries =
                    call.queries +
                    static_cast<std::ptrdiff_t>(kv_head * shape.group + row) * shape.head_dim;
                block.visible = visible.data();
                block.maximum = scratch.maximum.data() + part;
                block.total = scratch.total.data() + part;
                block.weighted = scratch.weighted.data() + part * shape.head_dim;
                kernels.attend(block);
            }
        }
    });
    for (int head = 0; head < call.n_heads; ++head) {
        float maximum = kMinusInfinity;
        float total = 0.0F;
        float* out = call.out + static_cast<std::ptrdiff_t>(head) * shape.head_dim;
        std::fill_n(out, shape.head_dim, 0.0F);
        for (int index = 0; index < n_blocks; ++index) {
            const std::ptrdiff_t part =
                static_cast<std::ptrdiff_t>(head / shape.group * n_blocks + index) * shape.group +
                head % shape.group;
            kernels.merge(maximum, total, out, scratch.maximum[static_cast<std::size_t>(part)],
                          scratch.total[static_cast<std::size_t>(part)],
                          scratch.weighted.data() + part * shape.head_dim, shape.head_dim);
        }
        kernels.finish(out, total, shape.head_dim, out);
    }
}

// ---------------------------------------------------------------- several tokens

/// The state of the rows of a tile. A row is one query head of one token; rows of a KV head are
/// numbered token by token, so positions never decrease along a tile.
struct Tile {
    int kv_head = 0;
    int first_row = 0;
    int n_rows = 0;
    std::array<float, kTileRows * kLargestHeadDim> queries;
    std::array<float, kTileRows * kLargestHeadDim> weighted;
    std::array<float, kTileRows> maximum;
    std::array<float, kTileRows> total;
};

/// Result of one block for the rows of a tile, and the block widened to f32 once for all of them.
struct BlockResult {
    std::array<float, kTileRows * kLargestHeadDim> weighted;
    std::array<float, kTileRows> maximum;
    std::array<float, kTileRows> total;
    std::array<float, kLargestHeadDim * kBlockTokens> keys;
    std::array<float, kLargestHeadDim * kBlockTokens> values;
};

void widen(const CpuKernels& kernels, AttentionBlock& block, BlockResult& result) {
    if (block.type == KvType::f32) return;
    const int elements = block.head_dim * kBlockTokens;
    kernels.widen(reinterpret_cast<const std::int16_t*>(block.keys), elements, result.keys.data());
    kernels.widen(reinterpret_cast<const std::int16_t*>(block.values), elements,
                  result.values.data());
    block.type = KvType::f32;
    block.keys = reinterpret_cast<const std::byte*>(result.keys.data());
    block.values = reinterpret_cast<const std::byte*>(result.values.data());
}

void fold_block(const DenseAttention& call, const CpuKernels& kernels, const Shape& shape,
                int index, Tile& tile, BlockResult& result) {
    std::array<int, kTileRows> visible{};
    int first = 0;  // earlier rows of the tile lie before this block
    for (int r = 0; r < tile.n_rows; ++r) {
        const int position = call.start + (tile.first_row + r) / shape.group;
        const int seen = std::min(kBlockTokens, position + 1 - index * kBlockTokens);
        if (seen <= 0) first = r + 1;
        visible[static_cast<std::size_t>(r)] = seen;
    }
    AttentionBlock block = block_view(call, tile.kv_head, index);
    const auto offset = static_cast<std::ptrdiff_t>(first) * shape.head_dim;
    block.n_rows = tile.n_rows - first;
    block.queries = tile.queries.data() + offset;
    block.visible = visible.data() + first;
    block.maximum = result.maximum.data() + first;
    block.total = result.total.data() + first;
    block.weighted = result.weighted.data() + offset;
    if (block.n_rows > 8) widen(kernels, block, result);
    kernels.attend(block);
    for (int r = first; r < tile.n_rows; ++r) {
        const auto i = static_cast<std::size_t>(r);
        const auto at = static_cast<std::ptrdiff_t>(r) * shape.head_dim;
        kernels.merge(tile.maximum[i], tile.total[i], tile.weighted.data() + at, result.maximum[i],
                      result.total[i], result.weighted.data() + at, shape.head_dim);
    }
}

void attend_tile(const DenseAttention& call, const CpuKernels& kernels, const Shape& shape,
                 Tile& tile, BlockResult& result) {
    const auto row_at = [&](int r) {
        const int row = tile.first_row + r;
        return row / shape.group * shape.token_stride +
               static_cast<std::ptrdiff_t>(tile.kv_head * shape.group + row % shape.group) *
                   shape.head_dim;
    };
    const auto row_bytes = static_cast<std::size_t>(shape.head_dim) * sizeof(float);
    for (int r = 0; r < tile.n_rows; ++r)
        std::memcpy(tile.queries.data() + r * shape.head_dim, call.queries + row_at(r), row_bytes);
    std::fill_n(tile.weighted.begin(), tile.n_rows * shape.head_dim, 0.0F);
    tile.maximum.fill(kMinusInfinity);
    tile.total.fill(0.0F);
    const int last_position = call.start + (tile.first_row + tile.n_rows - 1) / shape.group;
    for (int index = 0; index <= last_position / kBlockTokens; ++index)
        fold_block(call, kernels, shape, index, tile, result);
    for (int r = 0; r < tile.n_rows; ++r)
        kernels.finish(tile.weighted.data() + r * shape.head_dim,
                       tile.total[static_cast<std::size_t>(r)], shape.head_dim,
                       call.out + row_at(r));
}

void attend_many(const DenseAttention& call, const CpuKernels& kernels, ThreadPool& pool) {
    const Shape shape = shape_of(call);
    const int rows = call.n_tokens * shape.group;
    const int tiles = (rows + kTileRows - 1) / kTileRows;
    // Later tiles see more; small chunks claimed in order even that out.
    pool.parallel_for(tiles * shape.n_kv_heads, 1, [&](int begin, int end) {
        Tile tile;
        BlockResult result;
        for (int item = begin; item < end; ++item) {
            tile.kv_head = item / tiles;
            tile.first_row = item % tiles * kTileRows;
            tile.n_rows = std::min(kTileRows, rows - tile.first_row);
            attend_tile(call, kernels, shape, tile, result);
        }
    });
}

}  // namespace

void attend_dense(const DenseAttention& call, const CpuKernels& kernels, ThreadPool& pool,
                  AttentionScratch& scratch) {
    if (call.n_tokens == 1)
        attend_one(call, kernels, pool, scratch);
    else
        attend_many(call, kernels, pool);
}

}  // namespace skein::model
