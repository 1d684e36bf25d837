#include "model/attention/msa.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "model/attention/select.h"

namespace skein::model {
namespace {

constexpr int kIndexRows = 96;   // index queries that pass over the index keys together
constexpr int kTileTokens = 32;  // tokens whose selected blocks are visited together
constexpr int kBatchRows = 48;   // query rows that look at a block in one call
constexpr int kRowsToWiden = 8;  // more rows than these: widen the block once for all

int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

/// What the steps below share.
struct Msa {
    const AttentionCall& call;
    const IndexCall& index;
    const CpuKernels& kernels;
    int kv_heads;
    int block_tokens;
    int blocks_a_page;
    int top_k;

    Msa(const AttentionCall& attention, const IndexCall& branch, const CpuKernels& table)
        : call(attention),
          index(branch),
          kernels(table),
          kv_heads(attention.n_kv_heads()),
          block_tokens(branch.msa->block_tokens),
          blocks_a_page(kBlockTokens / branch.msa->block_tokens),
          top_k(branch.msa->top_k) {}

    int own_block(int token) const { return (call.start + token) / block_tokens; }
    std::span<std::int32_t> selected(int token, int kv_head) const {
        const auto at = static_cast<std::ptrdiff_t>(token * kv_heads + kv_head) * top_k;
        return {index.selected + at, static_cast<std::size_t>(top_k)};
    }
    /// Whether every block is chosen anyway, so that no score is needed.
    bool takes_all(int token) const { return own_block(token) < top_k; }
};

IndexBlock index_view(const Msa& m, int page) {
    const KvLayout& layout = m.call.table->layout();
    const std::byte* keys = m.call.table->block(page) + layout.index_keys(m.call.layer);
    IndexBlock block;
    block.type = layout.index_type();
    block.keys = keys;
    if (has_scales(block.type))
        block.key_scales = reinterpret_cast<const float*>(keys + layout.index_scales_offset());
    block.dim = layout.index_dim();
    block.block_tokens = m.block_tokens;
    return block;
}

/// One flag a block, from one a page. Empty when nothing is evicted.
std::vector<std::uint8_t> evicted_blocks(const Msa& m) {
    std::vector<std::uint8_t> flags;
    if (!m.call.table->any_evicted()) return flags;
    for (const std::uint8_t page : m.call.table->evicted_pages())
        flags.insert(flags.end(), static_cast<std::size_t>(m.blocks_a_page), page);
    return flags;
}

// ---------------------------------------------------------------- selection

void select_token(const Msa& m, int token, const float* scores, std::ptrdiff_t stride,
                  std::span<const std::uint8_t> evicted) {
    const int own = m.own_block(token);
    for (int head = 0; head < m.kv_heads; ++head)
        select_blocks({scores + head * stride, static_cast<std::size_t>(own) + 1}, own,
                      *m.index.msa, evicted, m.selected(token, head));
}

/// The codes of index queries, when index keys are codes too. Shapes: queries [n_rows, dim].
void encode_queries(const Msa& m, const float* queries, int n_rows,
                    std::vector<std::int16_t>& codes) {
    const KvLayout& layout = m.call.table->layout();
    if (layout.index_type() != KvType::int13) return;
    const int dim = layout.index_dim();
    codes.resize(static_cast<std::size_t>(n_rows * dim));
    for (int row = 0; row < n_rows; ++row) {
        const auto at = static_cast<std::ptrdiff_t>(row) * dim;
        float scale = 0;  // positive: the order of scores does not depend on it
        m.kernels.encode(KvType::int13, queries + at, dim,
                         reinterpret_cast<std::byte*>(codes.data() + at), scale);
    }
}

/// One token: the pages are shared out among the threads.
void select_one(const Msa& m, ThreadPool& pool, AttentionScratch& scratch,
                std::span<const std::uint8_t> evicted) {
    const int pages = m.call.start / kBlockTokens + 1;
    const auto stride = static_cast<std::ptrdiff_t>(pages) * m.blocks_a_page;
    scratch.block_scores.resize(static_cast<std::size_t>(stride * m.kv_heads));
    if (!m.takes_all(0)) {
        std::vector<std::int16_t> codes;
        encode_queries(m, m.index.queries, m.kv_heads, codes);
        pool.parallel_for(pages, pool.grain_for(pages, 4), [&](int begin, int end) {
            std::array<int, kMostSelectedBlocks> visible{};
            for (int page = begin; page < end; ++page) {
                IndexBlock block = index_view(m, page);
                visible.fill(std::min(kBlockTokens, m.call.start + 1 - page * kBlockTokens));
                block.n_rows = m.kv_heads;
                block.queries = m.index.queries;
                block.query_codes = codes.data();
                block.visible = visible.data();
                block.best = scratch.block_scores.data() + page * m.blocks_a_page;
                block.stride = stride;
                m.kernels.score_blocks(block);
            }
        });
    }
    select_token(m, 0, scratch.block_scores.data(), stride, evicted);
}

/// Memory of a thread for a tile of index queries.
struct IndexTile {
    std::vector<float> queries, scores, keys;
    std::vector<std::int16_t> codes;
    std::vector<int> visible;
};

void score_page(const Msa& m, int page, int first_token, int n_tokens, std::ptrdiff_t stride,
                IndexTile& tile) {
    IndexBlock block = index_view(m, page);
    int first = 0;  // earlier tokens of the tile lie before this page
    for (int t = 0; t < n_tokens; ++t) {
        const int seen =
            std::min(kBlockTokens, m.call.start + first_token + t + 1 - page * kBlockTokens);
        if (seen <= 0) first = t + 1;
        std::fill_n(tile.visible.begin() + t * m.kv_heads, m.kv_heads, seen);
    }
    const int row = first * m.kv_heads;
    block.n_rows = n_tokens * m.kv_heads - row;
    block.queries = tile.queries.data() + static_cast<std::ptrdiff_t>(row) * block.dim;
    if (!tile.codes.empty())
        block.query_codes = tile.codes.data() + static_cast<std::ptrdiff_t>(row) * block.dim;
    block.visible = tile.visible.data() + row;
    block.best = tile.scores.data() + row * stride + page * m.blocks_a_page;
    block.stride = stride;
    const bool floats = block.type != KvType::f32 && block.type != KvType::int13;
    if (floats && block.n_rows > kRowsToWiden) {
        m.kernels.widen(block.type, block.keys, block.dim * kBlockTokens, tile.keys.data());
        block.type = KvType::f32;
        block.keys = reinterpret_cast<const std::byte*>(tile.keys.data());
    }
    m.kernels.score_blocks(block);
}

/// A few tokens: their index queries pass over all index keys together.
void select_tile(const Msa& m, int first_token, int n_tokens, IndexTile& tile,
                 std::span<const std::uint8_t> evicted) {
    const int last = first_token + n_tokens - 1;
    const int pages = (m.call.start + last) / kBlockTokens + 1;
    const auto stride = static_cast<std::ptrdiff_t>(pages) * m.blocks_a_page;
    const int dim = m.call.table->layout().index_dim();
    const auto rows = static_cast<std::size_t>(n_tokens * m.kv_heads);
    tile.scores.resize(rows * static_cast<std::size_t>(stride));
    if (!m.takes_all(last)) {
        tile.visible.resize(rows);
        tile.keys.resize(static_cast<std::size_t>(dim) * kBlockTokens);
        tile.queries.resize(rows * static_cast<std::size_t>(dim));
        for (int t = 0; t < n_tokens; ++t)
            std::copy_n(m.index.queries + (first_token + t) * m.index.stride, m.kv_heads * dim,
                        tile.queries.data() + static_cast<std::ptrdiff_t>(t) * m.kv_heads * dim);
        encode_queries(m, tile.queries.data(), n_tokens * m.kv_heads, tile.codes);
        for (int page = 0; page < pages; ++page)
            score_page(m, page, first_token, n_tokens, stride, tile);
    }
    for (int t = 0; t < n_tokens; ++t)
        select_token(m, first_token + t, tile.scores.data() + t * m.kv_heads * stride, stride,
                     evicted);
}

void select_many(const Msa& m, ThreadPool& pool, std::span<const std::uint8_t> evicted) {
    const int tokens = std::max(1, kIndexRows / m.kv_heads);
    const int tiles = ceil_div(m.call.n_tokens, tokens);
    pool.parallel_for(tiles, 1, [&](int begin, int end) {
        IndexTile tile;
        for (int i = begin; i < end; ++i)
            select_tile(m, i * tokens, std::min(tokens, m.call.n_tokens - i * tokens), tile,
                        evicted);
    });
}

// ---------------------------------------------------------------- attention

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

void attend_batch(const Msa& m, AttentionBlock block, int n_rows, RowTile& tile) {
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
void attend_block(const Msa& m, std::span<const std::uint64_t> visits, RowTile& tile) {
    const int begin = static_cast<int>(visits[0] >> 32U) * m.block_tokens;
    const int group = m.call.group();
    const auto head_dim = static_cast<std::size_t>(m.call.head_dim());
    AttentionBlock block = block_view(m.call, tile.kv_head, begin);
    if (m.blocks_a_page == 1 && static_cast<int>(visits.size()) * group > kRowsToWiden)
        widen_block(m.kernels, block, tile.keys.data(), tile.values.data());
    std::size_t n = 0;
    for (const std::uint64_t visit : visits) {
        const int token = static_cast<int>(visit & 0xFFFFFFFFU);
        const int position = m.call.start + tile.first_token + token;
        for (int row = token * group; row < (token + 1) * group; ++row) {
            std::memcpy(tile.block_queries.data() + n * head_dim,
                        tile.queries.data() + static_cast<std::size_t>(row) * head_dim,
                        head_dim * sizeof(float));
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

void load_tile(const Msa& m, RowTile& tile) {
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
        for (const std::int32_t block : m.selected(token, tile.kv_head))
            if (block >= 0)
                tile.visits.push_back(static_cast<std::uint64_t>(block) << 32U |
                                      static_cast<std::uint64_t>(t));
    }
    std::sort(tile.visits.begin(), tile.visits.end());
}

/// Blocks ascending, so that every row folds its own blocks in ascending order.
void attend_tile(const Msa& m, RowTile& tile) {
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

void attend_many(const Msa& m, ThreadPool& pool) {
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

void attend_one(const Msa& m, ThreadPool& pool, AttentionScratch& scratch) {
    scratch.begins.clear();
    for (int head = 0; head < m.kv_heads; ++head)
        for (const std::int32_t block : m.selected(0, head))
            if (block >= 0) scratch.begins.push_back(block * m.block_tokens);
    BlockLists lists;
    lists.begins = scratch.begins.data();
    lists.count = static_cast<int>(scratch.begins.size()) / m.kv_heads;
    lists.per_head = true;
    lists.block_tokens = m.block_tokens;
    attend_token(m.call, lists, m.kernels, pool, scratch);
}

}  // namespace

void attend_msa(const AttentionCall& call, const IndexCall& index, const CpuKernels& kernels,
                ThreadPool& pool, AttentionScratch& scratch) {
    const Msa m(call, index, kernels);
    const std::vector<std::uint8_t> evicted = evicted_blocks(m);
    if (call.n_tokens == 1) {
        select_one(m, pool, scratch, evicted);
        attend_one(m, pool, scratch);
    } else {
        select_many(m, pool, evicted);
        attend_many(m, pool);
    }
}

}  // namespace skein::model
