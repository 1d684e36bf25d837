// Scores of one token: bounding pages by the high bytes of their keys never changes the choice.
#include "model/attention/index_scores.h"

#include <doctest/doctest.h>

#include <functional>
#include <optional>

#include "model/attention/select.h"
#include "model/kv/block_pool.h"
#include "tests/support/numbers.h"

using namespace skein;
using namespace skein::model;

namespace {

constexpr int kDim = 64;
constexpr int kPages = 40;  // more than four for each selected block
constexpr int kTokens = kPages * kBlockTokens - 50;
constexpr int kRows = 2;

using Key = std::function<float(test::Numbers& numbers, int page, int channel)>;

/// Index keys of kTokens tokens and what the tests ask about them.
struct Pages {
    explicit Pages(const Key& key) {
        msa.block_tokens = kBlockTokens;
        msa.top_k = 8;
        msa.index_dim = kDim;
        ModelConfig config;
        config.head_dim = 8;
        config.msa = msa;
        config.layers.resize(1);
        config.layers[0].n_kv_heads = kRows;
        config.layers[0].attention = AttentionKind::msa;
        const auto layout = std::make_shared<KvLayout>(config, KvType::int16);
        table.emplace(layout, BlockPool::make(layout->block_bytes(), {1U << 30U, {}, 0}));
        test::Numbers numbers(5);
        table->reserve(kTokens);
        std::vector<float> one(kDim);
        for (int t = 0; t < kTokens; ++t) {
            for (int d = 0; d < kDim; ++d)
                one[static_cast<std::size_t>(d)] = key(numbers, t / kBlockTokens, d);
            layout->store_index(scalar_kernels(), table->writable_block(t), 0, t % kBlockTokens,
                                one.data());
        }
        table->advance(kTokens);
    }

    /// The scores of the last token, with bounds first or, for the definition, one by one.
    std::vector<float> scores(const std::vector<float>& queries, const CpuKernels& kernels,
                              bool bounded) {
        AttentionCall call;
        call.table = &*table;
        call.start = kTokens - 1;
        call.n_tokens = 1;
        call.n_heads = kRows;
        IndexCall index;
        index.msa = &msa;
        index.queries = queries.data();
        if (bounded) {
            CHECK(bounds_pages(table->layout(), msa, kPages));
            ThreadPool pool(2);
            AttentionScratch scratch;
            score_token(call, index, kernels, pool, evicted(), scratch);
            scored = scratch.filter.scored;
            CHECK(scratch.filter.bounded == kPages);
            return scratch.block_scores;
        }
        std::vector<std::int16_t> codes;
        encode_queries(table->layout(), kernels, queries.data(), kRows, codes);
        std::vector<float> all(static_cast<std::size_t>(kRows * kPages));
        for (int page = 0; page < kPages; ++page) {
            IndexBlock block = index_view(call, kBlockTokens, page);
            IndexKeys keys;
            const int seen = std::min(kBlockTokens, kTokens - page * kBlockTokens);
            const int visible[kRows] = {seen, seen};
            block.n_rows = kRows;
            block.query_codes = codes.data();
            block.visible = visible;
            block.best = all.data() + page;
            block.stride = kPages;
            read_index_keys(kernels, block, keys);
            kernels.score_blocks(block);
        }
        return all;
    }

    std::span<const std::uint8_t> evicted() const {
        return table->any_evicted() ? table->evicted_pages() : std::span<const std::uint8_t>{};
    }

    std::vector<std::int32_t> chosen(const std::vector<float>& all, int row) const {
        std::vector<std::int32_t> list(static_cast<std::size_t>(msa.top_k));
        select_blocks(std::span(all).subspan(static_cast<std::size_t>(row * kPages), kPages),
                      kPages - 1, msa, evicted(), list);
        return list;
    }

    void check_same_choice(const std::vector<float>& queries) {
        for (const CpuKernels* kernels : available_kernels()) {
            CAPTURE(kernels->name);
            const auto some = scores(queries, *kernels, true);
            const auto all = scores(queries, *kernels, false);
            for (int row = 0; row < kRows; ++row) CHECK(chosen(some, row) == chosen(all, row));
        }
    }

    MsaConfig msa;
    std::optional<BlockTable> table;
    std::int64_t scored = 0;
};

std::vector<float> random_queries(std::uint64_t seed) {
    return test::Numbers(seed).floats(kRows * kDim, 1.0F);
}

float random_key(test::Numbers& numbers, int /*page*/, int /*channel*/) {
    return numbers.floats(1, 1.0F)[0];
}

}  // namespace

TEST_SUITE("model/attention/index_scores") {
    TEST_CASE("bounds choose what all scores choose, and leave pages out") {
        Pages pages(random_key);
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            pages.check_same_choice(random_queries(seed));
            CHECK(pages.scored < kPages);
        }
    }

    TEST_CASE("a token's own page never keeps another one out, however high its score") {
        // High bytes say nothing here: keys differ in their low bytes alone, so every bound of an
        // earlier page is the same, and below the score of the own page.
        const float step = 1.0F / static_cast<float>(exact_dot_limit(kDim));
        const Key key = [&](test::Numbers& numbers, int page, int channel) {
            const float size = page == kPages - 1 ? 3.0F : 1.0F;
            if (channel == 0) return size;
            const int low = numbers.below(1 << low_bits(kDim));
            return size * step * static_cast<float>(2048 + low);
        };
        Pages pages(key);
        pages.msa.top_k = 2;  // its own page and one other
        pages.check_same_choice(std::vector<float>(kRows * kDim, 1.0F));
    }

    TEST_CASE("first and last blocks that are always in take places from the others only") {
        Pages pages(random_key);
        pages.msa.init_blocks = 2;
        pages.msa.local_blocks = 3;
        for (std::uint64_t seed = 1; seed <= 10; ++seed)
            pages.check_same_choice(random_queries(seed));
    }

    TEST_CASE("evicted pages are no candidates, not even when all or all but a few are") {
        Pages pages(random_key);
        pages.table->evict(3, 30);
        pages.check_same_choice(random_queries(1));
        pages.table->evict(3, kPages - 1);
        pages.check_same_choice(random_queries(2));
        pages.table->evict(0, kPages - 1);
        pages.check_same_choice(random_queries(3));
        CHECK(pages.scored == 0);
    }

    TEST_CASE("queries and keys of zeros tie, and the lowest pages win") {
        Pages pages([](test::Numbers&, int, int) { return 0.0F; });
        const std::vector<float> zeros(kRows * kDim, 0.0F);
        pages.check_same_choice(zeros);
        const auto all = pages.scores(zeros, scalar_kernels(), true);
        CHECK(pages.chosen(all, 0) == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, kPages - 1});
    }
}
