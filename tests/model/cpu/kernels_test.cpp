// Every table that this CPU can run against the scalar one: equal bits, for sizes around the vector
// width and for starts that are not aligned.

#include "model/cpu/kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "model/cpu/attention_avx2.h"
#include "model/cpu/math.h"
#include "tests/support/numbers.h"

using namespace skein;
using namespace skein::model;

namespace {

/// Copies of random numbers at every misalignment, so that `run` sees the same values at
/// different addresses.
template <typename Run>
void compare_elementwise(const Run& run) {
    for (const CpuKernels* table : available_kernels()) {
        for (int n = 0; n <= 35; ++n) {
            for (int shift = 0; shift < 4; ++shift) {
                CAPTURE(table->name);
                CAPTURE(n);
                CAPTURE(shift);
                test::Numbers numbers(static_cast<std::uint64_t>(n) * 31 + 7);
                const auto size = static_cast<std::size_t>(n);
                const auto a = numbers.floats(size + 8, 20.0F);
                const auto b = numbers.floats(size + 8);
                auto expected = a;
                auto got = a;
                got.insert(got.begin(), static_cast<std::size_t>(shift), 0.0F);
                run(scalar_kernels(), expected.data(), b.data(), n);
                run(*table, got.data() + shift, b.data(), n);
                got.erase(got.begin(), got.begin() + shift);
                CHECK(test::first_difference(got, expected) == -1);
            }
        }
    }
}

double softmax_reference(const std::vector<double>& scores, const std::vector<double>& values) {
    double maximum = -1e300;
    for (const double s : scores) maximum = std::max(maximum, s);
    double total = 0;
    double sum = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
        total += std::exp(scores[j] - maximum);
        sum += std::exp(scores[j] - maximum) * values[j];
    }
    return sum / total;
}

/// One block of random keys and values with everything `attend` writes.
struct AttentionCase {
    AttentionCase(KvType type, int head_dim, int rows, std::uint64_t seed) : dim(head_dim) {
        test::Numbers numbers(seed);
        const auto elements = static_cast<std::size_t>(dim) * kBlockTokens;
        queries = numbers.floats(static_cast<std::size_t>(rows * dim), 0.3F);
        key_scales = numbers.floats(kBlockTokens, 1e-4F);
        value_scales = numbers.floats(kBlockTokens, 1e-4F);
        for (int r = 0; r < rows; ++r) visible.push_back(1 + numbers.below(kBlockTokens));
        if (rows > 2) visible[1] = kBlockTokens;
        for (auto* matrix : {&keys, &values}) {
            const auto plain = numbers.floats(elements);
            matrix->resize(elements * element_bytes(type));
            float scale = 0;
            scalar_kernels().encode(type, plain.data(), static_cast<int>(elements), matrix->data(),
                                    scale);
        }
        block.keys = keys.data();
        block.values = values.data();
        if (has_scales(type)) {
            block.key_scales = key_scales.data();
            block.value_scales = value_scales.data();
        }
        block.type = type;
        block.head_dim = dim;
        block.n_rows = rows;
        block.queries = queries.data();
        block.visible = visible.data();
    }
    /// maximum, total and weighted of all rows in one list.
    std::vector<float> run(const CpuKernels& table) {
        const auto rows = static_cast<std::size_t>(block.n_rows);
        std::vector<float> out(rows * (2 + static_cast<std::size_t>(dim)), -1.0F);
        block.maximum = out.data();
        block.total = out.data() + rows;
        block.weighted = out.data() + 2 * rows;
        table.attend(block);
        return out;
    }
    /// One stored element, with its token's scale.
    double element(const std::vector<std::byte>& matrix, int index, const float* scales,
                   int token) const {
        std::vector<float> wide(8);
        const auto first = static_cast<std::size_t>(index / 8 * 8);
        scalar_kernels().widen(block.type, matrix.data() + first * element_bytes(block.type), 8,
                               wide.data());
        const float scale = scales == nullptr ? 1.0F : scales[token];
        return static_cast<double>(wide[static_cast<std::size_t>(index % 8)]) *
               static_cast<double>(scale);
    }
    double key(int j, int d) const {
        return element(keys, strip_at(dim, kBlockTokens, d, j), block.key_scales, j);
    }
    double index_key(int j, int d) const {
        if (block.type != KvType::int13) return key(j, d);
        return element(keys, index_code_at(dim, d, j), block.key_scales, j);
    }
    double value(int j, int d) const {
        return element(values, strip_at(kBlockTokens, dim, j, d), block.value_scales, j);
    }

    int dim;
    std::vector<float> queries, key_scales, value_scales;
    std::vector<std::byte> keys, values;
    std::vector<int> visible;
    AttentionBlock block;
};

}  // namespace

TEST_SUITE("model/cpu/kernels") {
    TEST_CASE("tables are found by name and scalar is always there") {
        CHECK(select_kernels(Isa::scalar).isa == Isa::scalar);
        CHECK(&select_kernels(Isa::automatic) == available_kernels().back());
        for (const CpuKernels* table : available_kernels())
            CHECK(&select_kernels(table->isa) == table);
    }

    TEST_CASE("rmsnorm: equal bits") {
        compare_elementwise([](const CpuKernels& table, float* x, const float* weight, int n) {
            if (n > 0) table.rmsnorm(x, weight, n, 1e-5F, x);
        });
    }

    TEST_CASE("rmsnorm: a row of ones times its weight") {
        const std::vector<float> ones(48, 1.0F);
        std::vector<float> out(48);
        scalar_kernels().rmsnorm(ones.data(), ones.data(), 48, 0.0F, out.data());
        for (const float value : out) CHECK(value == 1.0F);
    }

    TEST_CASE("swiglu, add and scale: equal bits") {
        compare_elementwise([](const CpuKernels& table, float* x, const float* y, int n) {
            table.swiglu(x, y, n, x);
        });
        compare_elementwise(
            [](const CpuKernels& table, float* x, const float* y, int n) { table.add(x, y, n); });
        compare_elementwise([](const CpuKernels& table, float* x, const float* y, int n) {
            table.scale(x, y[0], n);
        });
    }

    TEST_CASE("rotations: equal bits, and they keep the length of every pair") {
        compare_elementwise([](const CpuKernels& table, float* x, const float* angles, int n) {
            table.rope_interleaved(x, angles, angles + n / 2, n / 2 * 2);
        });
        compare_elementwise([](const CpuKernels& table, float* x, const float* angles, int n) {
            table.rope_half_split(x, angles, angles + n / 2, n / 2 * 2);
        });
        const float cosine = 0.6F;
        const float sine = 0.8F;
        std::vector<float> x{3.0F, 4.0F};
        scalar_kernels().rope_interleaved(x.data(), &cosine, &sine, 2);
        CHECK(x[0] == doctest::Approx(3 * 0.6 - 4 * 0.8));
        CHECK(x[1] == doctest::Approx(3 * 0.8 + 4 * 0.6));
    }

    TEST_CASE("quantised rows: equal codes, scales and sums, and half a step of error at most") {
        for (const CpuKernels* table : available_kernels()) {
            for (const float size : {1.0F, 1e-3F, 1e5F, 1e-31F, 0.0F}) {
                CAPTURE(table->name);
                CAPTURE(size);
                test::Numbers numbers(3);
                const int n = 160;
                auto x = numbers.floats(static_cast<std::size_t>(n), size);
                x[33] = 0.5F * size;  // a tie or a zero does no harm
                std::vector<std::int16_t> codes[2];
                std::vector<float> scales[2];
                std::vector<float> sums[2];
                const CpuKernels* tables[2] = {&scalar_kernels(), table};
                for (int i = 0; i < 2; ++i) {
                    codes[i].resize(static_cast<std::size_t>(n));
                    scales[i].resize(5);
                    sums[i].resize(5);
                    tables[i]->quantize_row(x.data(), n, codes[i].data(), scales[i].data(),
                                            sums[i].data());
                }
                CHECK(codes[0] == codes[1]);
                CHECK(test::first_difference(scales[0], scales[1]) == -1);
                CHECK(test::first_difference(sums[0], sums[1]) == -1);
                for (std::size_t i = 0; i < x.size() && size > 1e-30F; ++i)
                    CHECK(std::fabs(static_cast<float>(codes[1][i]) * scales[1][i / 32] - x[i]) <=
                          0.51F * scales[1][i / 32]);
            }
        }
    }

    TEST_CASE("quantised rows with NaN or infinity: equal codes, no crash") {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        for (const CpuKernels* table : available_kernels()) {
            for (const float odd :
                 {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
                std::vector<float> x(32, 1.0F);
                x[5] = odd;
                std::vector<std::int16_t> codes[2] = {std::vector<std::int16_t>(32),
                                                      std::vector<std::int16_t>(32)};
                float scale = 0;
                float sum = 0;
                scalar_kernels().quantize_row(x.data(), 32, codes[0].data(), &scale, &sum);
                table->quantize_row(x.data(), 32, codes[1].data(), &scale, &sum);
                CHECK(codes[0] == codes[1]);
            }
        }
    }

    TEST_CASE("keys and values: every type keeps a head as well as it promises, in equal bits") {
        struct Case {
            KvType type;
            float relative, of_largest;  ///< error allowed
        };
        const Case cases[] = {
            {KvType::f32, 0.0F, 0.0F},         {KvType::f16, 4.9e-4F, 0.0F},
            {KvType::bf16, 4e-3F, 0.0F},       {KvType::int16, 0.0F, 0.51F / 32767},
            {KvType::int8, 0.0F, 0.51F / 127}, {KvType::int13, 0.0F, 0.51F / 2895}};
        for (const CpuKernels* table : available_kernels()) {
            for (const Case& one : cases) {
                for (const int n : {8, 16, 64, 80, 256}) {
                    CAPTURE(table->name);
                    CAPTURE(kv_type_name(one.type));
                    CAPTURE(n);
                    const auto x = test::Numbers(9).floats(static_cast<std::size_t>(n), 50.0F);
                    std::vector<std::byte> stored[2];
                    float scales[2] = {1, 1};
                    const CpuKernels* tables[2] = {&scalar_kernels(), table};
                    for (int i = 0; i < 2; ++i) {
                        stored[i].resize(x.size() * element_bytes(one.type));
                        tables[i]->encode(one.type, x.data(), n, stored[i].data(), scales[i]);
                    }
                    CHECK(stored[0] == stored[1]);
                    CHECK(scales[0] == scales[1]);
                    std::vector<float> wide(x.size());
                    table->widen(one.type, stored[1].data(), n, wide.data());
                    float largest = 0;
                    for (const float value : x) largest = std::max(largest, std::fabs(value));
                    for (std::size_t i = 0; i < x.size(); ++i)
                        CHECK(std::fabs(wide[i] * scales[1] - x[i]) <=
                              one.relative * std::fabs(x[i]) + one.of_largest * largest);
                }
            }
        }
    }

    TEST_CASE("attention over a block: equal bits for every head size, tile and horizon") {
        for (const CpuKernels* table : available_kernels()) {
            for (const KvType type :
                 {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8}) {
                for (const int head_dim : {8, 16, 40, 64, 128}) {
                    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 48, kMostAttendRows}) {
                        CAPTURE(table->name);
                        CAPTURE(head_dim);
                        CAPTURE(rows);
                        AttentionCase one(type, head_dim, rows, static_cast<std::uint64_t>(rows));
                        CHECK(test::first_difference(one.run(*table), one.run(scalar_kernels())) ==
                              -1);
                    }
                }
            }
        }
    }

    TEST_CASE("attention: a part of a page gives what the same tokens give in front of one") {
        for (const KvType type : {KvType::f32, KvType::int16, KvType::int8}) {
            for (const int head_dim : {8, 40, 64, 128}) {
                for (const int first : {8, 16, 32, 48, 64, 96}) {
                    const int tokens = first % 32 == 0 ? 32 : first % 16 == 0 ? 16 : 8;
                    CAPTURE(head_dim);
                    CAPTURE(first);
                    AttentionCase part(type, head_dim, 7, static_cast<std::uint64_t>(first));
                    for (int& visible : part.visible) visible = 1 + visible % tokens;
                    AttentionCase front = part;
                    const std::size_t size = element_bytes(type);
                    const auto move = [&](std::vector<std::byte>& matrix, int to, int from) {
                        std::memcpy(matrix.data() + static_cast<std::size_t>(to) * size,
                                    matrix.data() + static_cast<std::size_t>(from) * size, size);
                    };
                    for (int j = 0; j < tokens; ++j)
                        for (int d = 0; d < head_dim; ++d) {
                            move(front.keys, strip_at(head_dim, kBlockTokens, d, j),
                                 strip_at(head_dim, kBlockTokens, d, first + j));
                            move(front.values, strip_at(kBlockTokens, head_dim, j, d),
                                 strip_at(kBlockTokens, head_dim, first + j, d));
                        }
                    part.block.first = first;
                    front.block.keys = front.keys.data();
                    front.block.values = front.values.data();
                    for (AttentionCase* one : {&part, &front}) {
                        one->block.visible = one->visible.data();
                        if (!has_scales(type)) continue;
                        one->block.key_scales = part.key_scales.data() + first;
                        one->block.value_scales = part.value_scales.data() + first;
                    }
                    for (const CpuKernels* table : available_kernels())
                        CHECK(test::first_difference(part.run(*table), front.run(*table)) == -1);
                }
            }
        }
    }

    TEST_CASE("attention: codes read directly and codes widened before give equal bits") {
        AttentionCase one(KvType::int16, 64, 5, 11);
        for (const CpuKernels* table : available_kernels()) {
            const auto direct = one.run(*table);
            std::vector<float> keys(64 * kBlockTokens);
            std::vector<float> values(64 * kBlockTokens);
            table->widen(KvType::int16, one.block.keys, 64 * kBlockTokens, keys.data());
            table->widen(KvType::int16, one.block.values, 64 * kBlockTokens, values.data());
            AttentionCase wide(KvType::int16, 64, 5, 11);
            wide.block.type = KvType::f32;
            wide.block.keys = reinterpret_cast<const std::byte*>(keys.data());
            wide.block.values = reinterpret_cast<const std::byte*>(values.data());
            CHECK(test::first_difference(direct, wide.run(*table)) == -1);
        }
    }

    TEST_CASE("block scores: equal bits for every type, size and horizon, and the true maximum") {
        test::Numbers numbers(31);
        for (const KvType type :
             {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8, KvType::int13}) {
            for (const int dim : {8, 32, 64, 128, 256}) {
                for (const int run : {8, 16, 32, 64, 128}) {
                    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 48, 50, 97}) {
                        if (rows > 7 && (run != kBlockTokens || dim > 64)) continue;  // slow
                        AttentionCase one(type, dim, rows, static_cast<std::uint64_t>(rows + run));
                        IndexBlock block;
                        block.type = type;
                        block.keys = one.block.keys;
                        block.key_scales = one.block.key_scales;
                        block.dim = dim;
                        block.n_rows = rows;
                        block.queries = one.block.queries;
                        std::vector<std::int16_t> codes(one.queries.size());
                        for (std::size_t i = 0; i < codes.size(); ++i) {
                            codes[i] = static_cast<std::int16_t>(one.queries[i] * 2895 / 0.3F);
                            if (type == KvType::int13) one.queries[i] = codes[i];
                        }
                        block.query_codes = codes.data();
                        block.visible = one.block.visible;
                        block.block_tokens = run;
                        block.stride = kBlockTokens / run + 1;
                        const auto size = static_cast<std::size_t>(rows * block.stride);
                        std::vector<float> expected(size, 7.0F);
                        block.best = expected.data();
                        scalar_kernels().score_blocks(block);
                        for (const CpuKernels* table : available_kernels()) {
                            std::vector<float> got(size, 7.0F);
                            block.best = got.data();
                            table->score_blocks(block);
                            CHECK(got == expected);
                        }
                        double largest = -1e30;
                        for (int j = 0; j < std::min(run, one.visible[0]); ++j) {
                            double score = 0;
                            for (int d = 0; d < dim; ++d)
                                score +=
                                    static_cast<double>(one.queries[static_cast<std::size_t>(d)]) *
                                    one.index_key(j, d);
                            largest = std::max(largest, score);
                        }
                        CHECK(std::fabs(static_cast<double>(expected[0]) - largest) <
                              1e-4 + 1e-6 * std::fabs(largest));
                    }
                }
            }
        }
    }

    TEST_CASE("bounds of high bytes: equal bits, and never below the score of the whole codes") {
        test::Numbers numbers(47);
        for (const int dim : {8, 32, 64, 128, 256}) {
            const int limit = exact_dot_limit(dim);
            const int bits = low_bits(dim);
            const auto size = static_cast<std::size_t>(dim) * kBlockTokens;
            CAPTURE(dim);
            CHECK((limit >> bits) <= 127);
            CHECK((-limit >> bits) >= -128);
            for (int round = 0; round < 20; ++round) {
                const int rows = 1 + round % 6;
                // Random codes, and codes at the limit, all signs alike: the worst for the margin.
                const auto code = [&] {
                    const int any = numbers.below(2 * limit + 1) - limit;
                    return static_cast<std::int16_t>(round < 10              ? any
                                                     : any < 0 && round < 15 ? -limit
                                                                             : limit);
                };
                std::vector<std::int16_t> keys(size);
                std::vector<std::byte> planes(2 * size);
                for (std::size_t i = 0; i < size; ++i) {
                    keys[i] = code();
                    planes[i] = static_cast<std::byte>(keys[i] >> bits);
                    planes[size + i] = static_cast<std::byte>(keys[i] & ((1 << bits) - 1));
                }
                std::vector<std::int16_t> queries(static_cast<std::size_t>(rows * dim));
                for (std::int16_t& q : queries) q = code();
                std::vector<float> scales = numbers.floats(kBlockTokens, 1e-3F);
                for (float& scale : scales) scale = std::fabs(scale);
                std::vector<float> margins;
                for (int row = 0; row < rows; ++row)
                    margins.push_back(score_margin(queries.data() + row * dim, dim));
                std::vector<int> visible(static_cast<std::size_t>(rows));
                for (int& seen : visible) seen = 1 + numbers.below(kBlockTokens);
                IndexBlock block;
                block.type = KvType::int13;
                block.key_scales = scales.data();
                block.dim = dim;
                block.n_rows = rows;
                block.query_codes = queries.data();
                block.margins = margins.data();
                block.visible = visible.data();
                block.block_tokens = kBlockTokens;
                block.stride = 1;
                std::vector<float> bounds[2];
                for (const CpuKernels* table : available_kernels()) {
                    CAPTURE(table->name);
                    std::vector<std::int16_t> joined(size);
                    table->join_codes(planes.data(), dim, joined.data());
                    CHECK(joined == keys);
                    std::vector<float> scores(static_cast<std::size_t>(rows));
                    std::vector<float>& bound = bounds[table->isa == Isa::scalar ? 0 : 1];
                    bound.resize(static_cast<std::size_t>(rows));
                    block.best = bound.data();
                    block.keys = planes.data();
                    table->bound_blocks(block);
                    block.best = scores.data();
                    block.keys = reinterpret_cast<const std::byte*>(joined.data());
                    table->score_blocks(block);
                    for (std::size_t row = 0; row < scores.size(); ++row)
                        CHECK(bound[row] >= scores[row]);
                    CHECK(bound == bounds[0]);
                }
            }
        }
    }

    TEST_CASE("block scores: tokens that may not be seen and NaN scores never win") {
        std::vector<float> keys(8 * kBlockTokens, 1.0F);
        keys[3] = std::nanf("");  // token 3, channel 0
        const std::vector<float> query(8, -1.0F);
        const int visible = 40;
        for (const CpuKernels* table : available_kernels()) {
            IndexBlock block;
            block.keys = reinterpret_cast<const std::byte*>(keys.data());
            block.dim = 8;
            block.n_rows = 1;
            block.queries = query.data();
            block.visible = &visible;
            block.block_tokens = 32;
            std::vector<float> best(4, 7.0F);
            block.best = best.data();
            block.stride = 4;
            table->score_blocks(block);
            const float none = -std::numeric_limits<float>::infinity();
            CHECK(best == std::vector<float>{-8.0F, -8.0F, none, none});
        }
    }

    TEST_CASE("swigluoai: equal bits, and the clamps are where MiniMax-M3 has them") {
        test::Numbers numbers(5);
        for (const int n : {1, 7, 8, 33, 160}) {
            const auto gate = numbers.floats(static_cast<std::size_t>(n), 12.0F);
            const auto up = numbers.floats(static_cast<std::size_t>(n), 12.0F);
            std::vector<float> expected(gate.size());
            scalar_kernels().swigluoai(gate.data(), up.data(), n, 1.702F, 7.0F, expected.data());
            for (const CpuKernels* table : available_kernels()) {
                std::vector<float> got(gate.size());
                table->swigluoai(gate.data(), up.data(), n, 1.702F, 7.0F, got.data());
                CHECK(test::first_difference(got, expected) == -1);
            }
        }
    }

    TEST_CASE("attention: the definition agrees with a softmax in double") {
        for (const KvType type :
             {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8}) {
            AttentionCase one(type, 32, 4, 21);
            const auto out = one.run(scalar_kernels());
            for (int r = 0; r < 4; ++r) {
                std::vector<double> scores;
                for (int j = 0; j < one.visible[static_cast<std::size_t>(r)]; ++j) {
                    double score = 0;
                    for (int d = 0; d < 32; ++d)
                        score +=
                            static_cast<double>(one.queries[static_cast<std::size_t>(r * 32 + d)]) *
                            one.key(j, d);
                    scores.push_back(score);
                }
                for (int d = 0; d < 32; ++d) {
                    std::vector<double> values;
                    for (std::size_t j = 0; j < scores.size(); ++j)
                        values.push_back(one.value(static_cast<int>(j), d));
                    const auto total = static_cast<double>(out[static_cast<std::size_t>(4 + r)]);
                    const auto weighted =
                        static_cast<double>(out[static_cast<std::size_t>(8 + r * 32 + d)]);
                    CHECK(std::fabs(weighted / total - softmax_reference(scores, values)) < 2e-5);
                }
            }
        }
    }

    TEST_CASE("folding blocks: equal bits, and the first block is taken as it is") {
        for (const CpuKernels* table : available_kernels()) {
            std::vector<float> state[2];
            float maximum[2];
            float total[2];
            const CpuKernels* tables[2] = {&scalar_kernels(), table};
            for (int i = 0; i < 2; ++i) {
                test::Numbers numbers(4);
                state[i].assign(64, 0.0F);
                maximum[i] = -std::numeric_limits<float>::infinity();
                total[i] = 0;
                for (int block = 0; block < 5; ++block) {
                    const auto weighted = numbers.floats(64, 30.0F);
                    const float block_maximum = numbers.unit() * 40.0F;
                    tables[i]->merge(maximum[i], total[i], state[i].data(), block_maximum, 3.5F,
                                     weighted.data(), 64);
                    if (block == 0) CHECK(state[i] == weighted);
                }
                tables[i]->finish(state[i].data(), total[i], 64, state[i].data());
            }
            CHECK(test::first_difference(state[0], state[1]) == -1);
            CHECK(maximum[0] == maximum[1]);
            CHECK(total[0] == total[1]);
        }
    }
}
