#include "model/attention/index_scores.h"

#include <algorithm>
#include <array>
#include <functional>

#include "model/attention/select.h"

namespace skein::model {
namespace {

/// Below so many pages for each selected block, bounds cost more than they save.
constexpr int kPagesASelected = 4;

/// One token's index queries and all pages before it.
struct Token {
    const AttentionCall& call;
    const CpuKernels& kernels;
    ThreadPool& pool;
    IndexBlock queries;  ///< all but the keys
    int pages;
    int blocks_a_page;
    std::span<const std::uint8_t> evicted;

    /// The token's own page, the last, competes with none: it is always selected.
    bool candidate(int page) const {
        return page < pages - 1 &&
               (evicted.empty() || evicted[static_cast<std::size_t>(page)] == 0);
    }
    IndexBlock view(int page, std::array<int, kMostSelectedBlocks>& visible, float* best) const {
        const IndexBlock stored = index_view(call, queries.block_tokens, page);
        IndexBlock block = queries;
        block.type = stored.type;
        block.keys = stored.keys;
        block.key_scales = stored.key_scales;
        block.dim = stored.dim;
        visible.fill(std::min(kBlockTokens, call.start + 1 - page * kBlockTokens));
        block.visible = visible.data();
        block.best = best + page * blocks_a_page;
        block.stride = static_cast<std::ptrdiff_t>(pages) * blocks_a_page;
        return block;
    }
};

/// Exact scores of the pages listed.
void score_pages(const Token& token, std::span<const std::int32_t> list, float* scores) {
    const int n = static_cast<int>(list.size());
    token.pool.parallel_for(n, token.pool.grain_for(n, 4), [&](int begin, int end) {
        std::array<int, kMostSelectedBlocks> visible{};
        IndexKeys keys;
        for (int i = begin; i < end; ++i) {
            IndexBlock block = token.view(list[static_cast<std::size_t>(i)], visible, scores);
            read_index_keys(token.kernels, block, keys);
            token.kernels.score_blocks(block);
        }
    });
}

void bound_pages(const Token& token, float* bounds) {
    const auto half =
        static_cast<std::size_t>(token.call.table->layout().index_dim()) * kBlockTokens;
    token.pool.parallel_for(
        token.pages, token.pool.grain_for(token.pages, 4), [&](int begin, int end) {
            std::array<int, kMostSelectedBlocks> visible{};
            for (int page = begin; page < end; ++page) {
                IndexBlock block = token.view(page, visible, bounds);
                if (page + 1 < token.pages)
                    block.ahead = {
                        index_view(token.call, token.queries.block_tokens, page + 1).keys, half};
                token.kernels.bound_blocks(block);
            }
        });
}

/// Pages whose score may be among the best `n` of a row, for any row.
class Wanted {
  public:
    Wanted(const Token& token, const std::vector<float>& bounds) : token_(token), bounds_(bounds) {
        marks_.resize(static_cast<std::size_t>(token.pages));
    }
    /// The `n` highest bounds of each row.
    std::vector<std::int32_t> likely(int n) {
        std::vector<std::int32_t> pages;
        for (int page = 0; page < token_.pages; ++page)
            if (token_.candidate(page)) pages.push_back(page);
        const auto most = std::min(pages.size(), static_cast<std::size_t>(n));
        std::vector<std::int32_t> found;
        if (most == 0) return found;
        for (int row = 0; row < token_.queries.n_rows; ++row) {
            const auto middle = pages.begin() + static_cast<std::ptrdiff_t>(most);
            std::nth_element(
                pages.begin(), middle - 1, pages.end(),
                [&](std::int32_t a, std::int32_t b) { return bound(row, a) > bound(row, b); });
            for (auto page = pages.begin(); page != middle; ++page) mark(*page, found);
        }
        return found;
    }
    /// Those left whose bound is not below the n-th best score found so far.
    std::vector<std::int32_t> possible(int n, const std::vector<float>& scores) {
        std::vector<std::int32_t> found;
        const std::vector<std::uint8_t> scored = marks_;
        for (int row = 0; row < token_.queries.n_rows; ++row) {
            std::vector<float> best;
            for (int page = 0; page < token_.pages; ++page)
                if (scored[static_cast<std::size_t>(page)] != 0)
                    best.push_back(scores[at(row, page)]);
            if (best.size() < static_cast<std::size_t>(n)) continue;  // every candidate is there
            std::nth_element(best.begin(), best.begin() + n - 1, best.end(), std::greater<>());
            const float least = best[static_cast<std::size_t>(n) - 1];
            for (int page = 0; page < token_.pages; ++page)
                if (token_.candidate(page) && bound(row, page) >= least) mark(page, found);
        }
        return found;
    }

  private:
    std::size_t at(int row, int page) const {
        return static_cast<std::size_t>(row * token_.pages + page);
    }
    float bound(int row, int page) const { return bounds_[at(row, page)]; }
    void mark(int page, std::vector<std::int32_t>& found) {
        std::uint8_t& marked = marks_[static_cast<std::size_t>(page)];
        if (marked == 0) found.push_back(page);
        marked = 1;
    }

    const Token& token_;
    const std::vector<float>& bounds_;
    std::vector<std::uint8_t> marks_;
};

/// The scores of one token in two passes. A page left out has `top_k - 1` candidates before it in
/// every row, so it is not selected; forced blocks only take places away.
void score_filtered(const Token& token, int top_k, AttentionScratch& scratch) {
    std::vector<float>& bounds = scratch.block_bounds;
    bounds.resize(scratch.block_scores.size());
    bound_pages(token, bounds.data());
    std::fill(scratch.block_scores.begin(), scratch.block_scores.end(), kMinusInfinity);
    Wanted wanted(token, bounds);
    const auto likely = wanted.likely(2 * top_k);
    score_pages(token, likely, scratch.block_scores.data());
    const auto possible = wanted.possible(std::max(1, top_k - 1), scratch.block_scores);
    score_pages(token, possible, scratch.block_scores.data());
    scratch.filter.bounded += token.pages;
    scratch.filter.scored += static_cast<std::int64_t>(likely.size() + possible.size());
}

}  // namespace

bool bounds_pages(const KvLayout& layout, const MsaConfig& msa, int pages) {
    return layout.index_type() == KvType::int13 && msa.block_tokens == kBlockTokens &&
           pages >= kPagesASelected * msa.top_k;
}

IndexBlock index_view(const AttentionCall& call, int block_tokens, int page) {
    const KvLayout& layout = call.table->layout();
    const std::byte* keys = call.table->block(page) + layout.index_keys(call.layer);
    IndexBlock block;
    block.type = layout.index_type();
    block.keys = keys;
    if (has_scales(block.type))
        block.key_scales = reinterpret_cast<const float*>(keys + layout.index_scales_offset());
    block.dim = layout.index_dim();
    block.block_tokens = block_tokens;
    return block;
}

void read_index_keys(const CpuKernels& kernels, IndexBlock& block, IndexKeys& keys) {
    const int elements = block.dim * kBlockTokens;
    if (block.type == KvType::int13) {
        keys.joined.resize(static_cast<std::size_t>(elements));
        kernels.join_codes(block.keys, block.dim, keys.joined.data());
        block.keys = reinterpret_cast<const std::byte*>(keys.joined.data());
    } else if (block.type != KvType::f32 && block.n_rows > kRowsToWiden) {
        keys.widened.resize(static_cast<std::size_t>(elements));
        kernels.widen(block.type, block.keys, elements, keys.widened.data());
        block.type = KvType::f32;
        block.keys = reinterpret_cast<const std::byte*>(keys.widened.data());
    }
}

void encode_queries(const KvLayout& layout, const CpuKernels& kernels, const float* queries,
                    int n_rows, std::vector<std::int16_t>& codes) {
    if (layout.index_type() != KvType::int13) return;
    const int dim = layout.index_dim();
    codes.resize(static_cast<std::size_t>(n_rows * dim));
    for (int row = 0; row < n_rows; ++row) {
        const auto at = static_cast<std::ptrdiff_t>(row) * dim;
        float scale = 0;  // positive: the order of scores does not depend on it
        kernels.encode(KvType::int13, queries + at, dim,
                       reinterpret_cast<std::byte*>(codes.data() + at), scale);
    }
}

void score_token(const AttentionCall& call, const IndexCall& index, const CpuKernels& kernels,
                 ThreadPool& pool, std::span<const std::uint8_t> evicted,
                 AttentionScratch& scratch) {
    const KvLayout& layout = call.table->layout();
    const int rows = call.n_kv_heads();
    const int pages = call.start / kBlockTokens + 1;
    const int blocks_a_page = kBlockTokens / index.msa->block_tokens;
    scratch.block_scores.resize(static_cast<std::size_t>(rows * pages * blocks_a_page));
    std::vector<std::int16_t> codes;
    encode_queries(layout, kernels, index.queries, rows, codes);
    IndexBlock queries;
    queries.n_rows = rows;
    queries.queries = index.queries;
    queries.query_codes = codes.data();
    queries.block_tokens = index.msa->block_tokens;
    Token token{call, kernels, pool, queries, pages, blocks_a_page, evicted};
    if (bounds_pages(layout, *index.msa, pages)) {
        std::vector<float> margins;
        for (int row = 0; row < rows; ++row)
            margins.push_back(
                score_margin(codes.data() + row * layout.index_dim(), layout.index_dim()));
        token.queries.margins = margins.data();
        score_filtered(token, index.msa->top_k, scratch);
        return;
    }
    std::vector<std::int32_t> all(static_cast<std::size_t>(pages));
    for (int page = 0; page < pages; ++page) all[static_cast<std::size_t>(page)] = page;
    score_pages(token, all, scratch.block_scores.data());
}

}  // namespace skein::model
