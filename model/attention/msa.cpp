#include "model/attention/msa.h"

#include <algorithm>
#include <array>
#include <vector>

#include "model/attention/index_scores.h"
#include "model/attention/select.h"
#include "model/attention/selected.h"

namespace skein::model {
namespace {

constexpr int kIndexRows = 96;  // index queries that pass over the index keys together

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

void select_one(const Msa& m, ThreadPool& pool, AttentionScratch& scratch,
                std::span<const std::uint8_t> evicted) {
    const auto stride =
        static_cast<std::ptrdiff_t>(m.call.start / kBlockTokens + 1) * m.blocks_a_page;
    if (m.takes_all(0))
        scratch.block_scores.resize(static_cast<std::size_t>(stride * m.kv_heads));
    else
        score_token(m.call, m.index, m.kernels, pool, evicted, scratch);
    select_token(m, 0, scratch.block_scores.data(), stride, evicted);
}

/// Memory of a thread for a tile of index queries.
struct IndexTile {
    std::vector<float> queries, scores;
    IndexKeys keys;
    std::vector<std::int16_t> codes;
    std::vector<int> visible;
};

void score_page(const Msa& m, int page, int first_token, int n_tokens, std::ptrdiff_t stride,
                IndexTile& tile) {
    IndexBlock block = index_view(m.call, m.block_tokens, page);
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
    read_index_keys(m.kernels, block, tile.keys);
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
        tile.queries.resize(rows * static_cast<std::size_t>(dim));
        for (int t = 0; t < n_tokens; ++t)
            std::copy_n(m.index.queries + (first_token + t) * m.index.stride, m.kv_heads * dim,
                        tile.queries.data() + static_cast<std::ptrdiff_t>(t) * m.kv_heads * dim);
        encode_queries(m.call.table->layout(), m.kernels, tile.queries.data(),
                       n_tokens * m.kv_heads, tile.codes);
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

}  // namespace

void attend_msa(const AttentionCall& call, const IndexCall& index, const CpuKernels& kernels,
                ThreadPool& pool, AttentionScratch& scratch) {
    const Msa m(call, index, kernels);
    const std::vector<std::uint8_t> evicted = evicted_blocks(m);
    if (call.n_tokens == 1)
        select_one(m, pool, scratch, evicted);
    else
        select_many(m, pool, evicted);
    SelectedBlocks blocks;
    blocks.lists = index.selected;
    blocks.top_k = m.top_k;
    blocks.block_tokens = m.block_tokens;
    attend_selected(call, blocks, kernels, pool, scratch);
}

}  // namespace skein::model
