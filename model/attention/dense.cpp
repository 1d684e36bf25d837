#include "model/attention/dense.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace skein::model {
namespace {

constexpr int kTileRows = 48;  // query rows that pass over the blocks together

struct Shape {
    int head_dim, n_kv_heads, group;  // group: query heads that share a KV head
    std::ptrdiff_t token_stride;
};

Shape shape_of(const AttentionCall& call) {
    return {call.head_dim(), call.n_kv_heads(), call.group(), call.token_stride()};
}

void attend_one(const AttentionCall& call, const CpuKernels& kernels, ThreadPool& pool,
                AttentionScratch& scratch) {
    scratch.begins.clear();
    for (int index = 0; index <= call.start / kBlockTokens; ++index)
        if (!call.table->evicted(index)) scratch.begins.push_back(index * kBlockTokens);
    BlockLists lists;
    lists.begins = scratch.begins.data();
    lists.count = static_cast<int>(scratch.begins.size());
    attend_token(call, lists, kernels, pool, scratch);
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

void fold_block(const AttentionCall& call, const CpuKernels& kernels, const Shape& shape, int index,
                Tile& tile, BlockResult& result) {
    std::array<int, kTileRows> visible{};
    int first = 0;  // earlier rows of the tile lie before this block
    for (int r = 0; r < tile.n_rows; ++r) {
        const int position = call.start + (tile.first_row + r) / shape.group;
        const int seen = std::min(kBlockTokens, position + 1 - index * kBlockTokens);
        if (seen <= 0) first = r + 1;
        visible[static_cast<std::size_t>(r)] = seen;
    }
    AttentionBlock block = block_view(call, tile.kv_head, index * kBlockTokens);
    const auto offset = static_cast<std::ptrdiff_t>(first) * shape.head_dim;
    block.n_rows = tile.n_rows - first;
    block.queries = tile.queries.data() + offset;
    block.visible = visible.data() + first;
    block.maximum = result.maximum.data() + first;
    block.total = result.total.data() + first;
    block.weighted = result.weighted.data() + offset;
    if (block.n_rows > kRowsToWiden)
        widen_block(kernels, block, result.keys.data(), result.values.data());
    kernels.attend(block);
    for (int r = first; r < tile.n_rows; ++r) {
        const auto i = static_cast<std::size_t>(r);
        const auto at = static_cast<std::ptrdiff_t>(r) * shape.head_dim;
        kernels.merge(tile.maximum[i], tile.total[i], tile.weighted.data() + at, result.maximum[i],
                      result.total[i], result.weighted.data() + at, shape.head_dim);
    }
}

void attend_tile(const AttentionCall& call, const CpuKernels& kernels, const Shape& shape,
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
        if (!call.table->evicted(index)) fold_block(call, kernels, shape, index, tile, result);
    for (int r = 0; r < tile.n_rows; ++r)
        kernels.finish(tile.weighted.data() + r * shape.head_dim,
                       tile.total[static_cast<std::size_t>(r)], shape.head_dim,
                       call.out + row_at(r));
}

void attend_many(const AttentionCall& call, const CpuKernels& kernels, ThreadPool& pool) {
    const Shape shape = shape_of(call);
    const int rows = call.n_tokens * shape.group;
    const int tiles = ceil_div(rows, kTileRows);
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

void attend_dense(const AttentionCall& call, const CpuKernels& kernels, ThreadPool& pool,
                  AttentionScratch& scratch) {
    if (call.n_tokens == 1)
        attend_one(call, kernels, pool, scratch);
    else
        attend_many(call, kernels, pool);
}

}  // namespace skein::model
