#include "model/attention/selected.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace skein::model {
namespace {

constexpr int kTileTokens = 32;  // tokens whose selected blocks are visited together
constexpr int kBatchRows = 48;   // query rows that look at a block in one call

/// What the steps below share.
struct Selected {
    const AttentionCall& call;
    const SelectedBlocks& blocks;
    const CpuKernels& kernels;
    int kv_heads;
    int block_tokens;

    std::span<const std::int32_t> list(int token, int kv_head) const {
        const auto at = static_cast<std::ptrdiff_t>(token * kv_heads + kv_head) * blocks.top_k;
        return {blocks.lists + at, static_cast<std::size_t>(blocks.top_k)};
    }
};

/// The rows of a few tokens and one KV head, and memory for one block of them.
struct RowTile {
    int kv_head = 0;
    int first_token = 0;
    int n_tokens = 0;
    std::vector<float> queries, weighted, maximum, total;  ///< of all rows
    std::vector<float> block_queries, block_weighted;      ///< of a batch
    std::array<float, kBatchRows> block_maximum, block_total;
    std::array<int, kBatchRows> visible, rows;
    std::vector<float> keys, values;
    std::vector<std::uint64_t> visits;  ///< block << 32 | token, ascending
};

void attend_batch(const Selected& m, AttentionBlock block, int n_rows, RowTile& tile) {
    const int head_dim = m.call.head_dim();
    block.n_rows = n_rows;
    block.queries = tile.block_queries.data();
    block.visible = tile.visible.data();
    block.maximum = tile.block_maximum.data();
    block.total = tile.block_total.data();
    block.weighted = tile.block_weighted.data();
    m.kernels.attend(block);
    for (int i = 0; i < n_rows; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto row = static_cast<std::size_t>(tile.rows[at]);
        m.kernels.merge(tile.maximum[row], tile.total[row],
                        tile.weighted.data() + row * static_cast<std::size_t>(head_dim),
                        tile.block_maximum[at], tile.block_total[at],
                        tile.block_weighted.data() + at * static_cast<std::size_t>(head_dim),
                        head_dim);
    }
}

/// One block for the tokens that chose it.
void attend_block(const Selected& m, std::span<const std::uint64_t> visits, RowTile& tile) {
    const int begin = static_cast<int>(visits[0] >> 32U) * m.block_tokens;
    const int group = m.call.group();
    const auto head_dim = static_cast<std::size_t>(m.call.head_dim());
    AttentionBlock block = block_view(m.call, tile.kv_head, begin);
    if (m.block_tokens == kBlockTokens && static_cast<int>(visits.size()) * group > kRowsToWiden)
        widen_block(m.kernels, block, tile.keys.data(), tile.values.data());
    std::size_t n = 0;
    for (const std::uint64_t visit : visits) {
        const int token = static_cast<int>(visit & 0xFFFFFFFFU);
        const int position = m.call.start + tile.first_token + token;
        const bool far = m.blocks.far != nullptr && m.blocks.far->is_far(position, begin);
        for (int row = token * group; row < (token + 1) * group; ++row) {
            float* query = tile.block_queries.data() + n * head_dim;
            if (far)
                m.blocks.far->turn(m.kernels, tile.first_token + token,
                                   tile.kv_head * group + row % group, begin, query);
            else
                std::copy_n(tile.queries.data() + static_cast<std::size_t>(row) * head_dim,
                            head_dim, query);
            tile.visible[n] = std::min(m.block_tokens, position + 1 - begin);
            tile.rows[n] = row;
            if (++n == kBatchRows) {
                attend_batch(m, block, kBatchRows, tile);
                n = 0;
            }
        }
    }
    if (n > 0) attend_batch(m, block, static_cast<int>(n), tile);
}

void load_tile(const Selected& m, RowTile& tile) {
    const int group = m.call.group();
    const auto head_dim = static_cast<std::size_t>(m.call.head_dim());
    const auto rows = static_cast<std::size_t>(tile.n_tokens * group);
    tile.queries.resize(rows * head_dim);
    tile.weighted.assign(rows * head_dim, 0.0F);
    tile.maximum.assign(rows, kMinusInfinity);
    tile.total.assign(rows, 0.0F);
    tile.block_queries.resize(kBatchRows * head_dim);
    tile.block_weighted.resize(kBatchRows * head_dim);
    tile.keys.resize(head_dim * kBlockTokens);
    tile.values.resize(head_dim * kBlockTokens);
    tile.visits.clear();
    const auto width = static_cast<std::size_t>(group) * head_dim;
    for (int t = 0; t < tile.n_tokens; ++t) {
        const int token = tile.first_token + t;
        std::memcpy(tile.queries.data() + static_cast<std::size_t>(t) * width,
                    m.call.queries + token * m.call.token_stride() +
                        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(tile.kv_head) * width),
                    width * sizeof(float));
        for (const std::int32_t block : m.list(token, tile.kv_head))
            if (block >= 0)
                tile.visits.push_back(static_cast<std::uint64_t>(block) << 32U |
                                      static_cast<std::uint64_t>(t));
    }
    std::sort(tile.visits.begin(), tile.visits.end());
}

/// Blocks ascending, so that every row folds its own blocks in ascending order.
void attend_tile(const Selected& m, RowTile& tile) {
    load_tile(m, tile);
    const std::span<const std::uint64_t> visits = tile.visits;
    for (std::size_t first = 0; first < visits.size();) {
        std::size_t last = first;
        while (last < visits.size() && visits[last] >> 32U == visits[first] >> 32U) ++last;
        attend_block(m, visits.subspan(first, last - first), tile);
        first = last;
    }
    const int group = m.call.group();
    const int head_dim = m.call.head_dim();
    for (int row = 0; row < tile.n_tokens * group; ++row) {
        const int token = tile.first_token + row / group;
        const int head = tile.kv_head * group + row % group;
        m.kernels.finish(tile.weighted.data() + static_cast<std::ptrdiff_t>(row) * head_dim,
                         tile.total[static_cast<std::size_t>(row)], head_dim,
                         m.call.out + token * m.call.token_stride() +
                             static_cast<std::ptrdiff_t>(head) * head_dim);
    }
}

void attend_many(const Selected& m, ThreadPool& pool) {
    const int tiles = ceil_div(m.call.n_tokens, kTileTokens);
    pool.parallel_for(tiles * m.kv_heads, 1, [&](int begin, int end) {
        RowTile tile;
        for (int item = begin; item < end; ++item) {
            tile.kv_head = item / tiles;
            tile.first_token = item % tiles * kTileTokens;
            tile.n_tokens = std::min(kTileTokens, m.call.n_tokens - tile.first_token);
            attend_tile(m, tile);
        }
    });
}

void attend_one(const Selected& m, ThreadPool& pool, AttentionScratch& scratch) {
    scratch.begins.clear();
    for (int head = 0; head < m.kv_heads; ++head)
        for (const std::int32_t block : m.list(0, head))
            if (block >= 0) scratch.begins.push_back(block * m.block_tokens);
    BlockLists lists;
    lists.begins = scratch.begins.data();
    lists.count = static_cast<int>(scratch.begins.size()) / m.kv_heads;
    lists.per_head = true;
    lists.block_tokens = m.block_tokens;
    attend_token(m.call, lists, m.kernels, pool, scratch);
}

}  // namespace

void attend_selected(const AttentionCall& call, const SelectedBlocks& blocks,
                     const CpuKernels& kernels, ThreadPool& pool, AttentionScratch& scratch) {
    const Selected m{call, blocks, kernels, call.n_kv_heads(), blocks.block_tokens};
    if (call.n_tokens == 1 && blocks.far == nullptr)
        attend_one(m, pool, scratch);
    else
        attend_many(m, pool);
}

}  // namespace skein::model
