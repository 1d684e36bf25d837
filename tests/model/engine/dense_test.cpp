#include "model/attention/dense.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/kv/block_pool.h"
#include "tests/support/numbers.h"

using namespace skein;
using namespace skein::model;

namespace {

constexpr int kDim = 16;

/// Random keys and values of `tokens` positions for two KV heads, also as plain arrays.
struct Past {
    Past(KvType type, int tokens) : table(make_table(type)) {
        test::Numbers numbers(8);
        table.reserve(tokens);
        for (int t = 0; t < tokens; ++t) {
            for (int head = 0; head < 2; ++head) {
                const auto key = numbers.floats(kDim, 2.0F);
                const auto value = numbers.floats(kDim);
                table.layout().store(scalar_kernels(), table.writable_block(t), 0, head,
                                     t % kBlockTokens, key.data(), value.data());
                keys.insert(keys.end(), key.begin(), key.end());
                values.insert(values.end(), value.begin(), value.end());
            }
        }
        table.advance(tokens);
    }
    static BlockTable make_table(KvType type) {
        ModelConfig config;
        config.head_dim = kDim;
        config.layers.resize(1);
        config.layers[0].n_kv_heads = 2;
        const auto layout = std::make_shared<KvLayout>(config, type);
        return {layout, BlockPool::make(layout->block_bytes(), {std::size_t{1} << 30U, {}, 0})};
    }
    double at(const std::vector<float>& from, int token, int head, int d) const {
        return static_cast<double>(from[static_cast<std::size_t>((token * 2 + head) * kDim + d)]);
    }

    BlockTable table;
    std::vector<float> keys, values;
};

std::vector<float> attend(const Past& past, const std::vector<float>& queries, int start, int n,
                          int heads, const CpuKernels& kernels, int threads) {
    ThreadPool pool(threads);
    AttentionScratch scratch;
    std::vector<float> out(static_cast<std::size_t>(n * heads * kDim));
    AttentionCall call;
    call.table = &past.table;
    call.start = start;
    call.n_tokens = n;
    call.n_heads = heads;
    call.queries = queries.data();
    call.out = out.data();
    attend_dense(call, kernels, pool, scratch);
    return out;
}

}  // namespace

TEST_SUITE("model/attention/dense") {
    TEST_CASE("many tokens at once and one at a time give equal bits, which follow the softmax") {
        for (const KvType type :
             {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8}) {
            // bf16 keeps 8 bits of values below 1 and of scores near 1, int8 7 bits of both.
            const bool coarse = type == KvType::bf16 || type == KvType::int8;
            const double tolerance = coarse ? 1e-2 : 1e-3;
            for (const int heads : {2, 6, 128}) {
                const int n = heads == 128 ? 3 : 270;
                const int start = 130;
                const Past past(type, start + n);
                const auto width = static_cast<std::size_t>(heads * kDim);
                const auto queries =
                    test::Numbers(9).floats(width * static_cast<std::size_t>(n), 0.5F);
                for (const CpuKernels* table : available_kernels()) {
                    CAPTURE(heads);
                    CAPTURE(table->name);
                    const auto all = attend(past, queries, start, n, heads, *table, 3);
                    std::vector<float> singly;
                    for (int t = 0; t < n; ++t) {
                        const auto first = queries.begin() + static_cast<std::ptrdiff_t>(width) * t;
                        const std::vector<float> one(first,
                                                     first + static_cast<std::ptrdiff_t>(width));
                        const auto out = attend(past, one, start + t, 1, heads, *table, 1);
                        singly.insert(singly.end(), out.begin(), out.end());
                    }
                    CHECK(test::first_difference(all, singly) == -1);
                    const int head = heads - 1;  // of the last token, against double arithmetic
                    const std::size_t row = width * static_cast<std::size_t>(n - 1) +
                                            static_cast<std::size_t>(head * kDim);
                    std::vector<double> exact(kDim);
                    double total = 0;
                    for (int j = 0; j < start + n; ++j) {
                        double score = 0;
                        for (int d = 0; d < kDim; ++d)
                            score +=
                                static_cast<double>(queries[row + static_cast<std::size_t>(d)]) *
                                past.at(past.keys, j, 1, d);
                        total += std::exp(score);
                        for (int d = 0; d < kDim; ++d)
                            exact[static_cast<std::size_t>(d)] +=
                                std::exp(score) * past.at(past.values, j, 1, d);
                    }
                    for (std::size_t d = 0; d < kDim; ++d)
                        CHECK(std::fabs(static_cast<double>(all[row + d]) - exact[d] / total) <
                              tolerance);
                }
            }
        }
    }
}
