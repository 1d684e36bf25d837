// Projections of every stored type: equal bits between tables, between one token and many, and
// between ways of cutting the rows; and close to double arithmetic.

#include <doctest/doctest.h>

#include <cmath>

#include "model/cpu/kernels.h"
#include "model/cpu/matmul_avx2.h"
#include "tests/model/cpu/stored_blocks.h"

using namespace skein;
using namespace skein::model;

namespace {

struct Projection {
    Projection(DType type, int rows, int columns, int tokens)
        : stored(test::stored_tensor(type, rows, columns, 17)), n(tokens) {
        matrix = plan_packing(stored.tensor);
        memory.resize(matrix.bytes());
        pack_panels(stored.tensor, matrix, 0, matrix.n_panels(), memory.data());
        matrix.data = memory.data();
        const auto width = static_cast<std::size_t>(columns);
        const auto count = static_cast<std::size_t>(tokens);
        values = test::Numbers(23).floats(width * count, 3.0F);
        input.columns = columns;
        input.values = values.data();
        if (!matrix.quantised()) return;
        codes.resize(values.size());
        scales.resize(values.size() / kBlockColumns);
        sums.resize(scales.size());
        for (std::size_t t = 0; t < count; ++t)
            scalar_kernels().quantize_row(
                values.data() + t * width, columns, codes.data() + t * width,
                scales.data() + t * width / kBlockColumns, sums.data() + t * width / kBlockColumns);
        input.codes = codes.data();
        input.scales = scales.data();
        input.sums = sums.data();
    }

    std::vector<float> run(const CpuKernels& table, int cut = 0) const {
        const auto stride = static_cast<std::size_t>(matrix.padded_rows());
        std::vector<float> out(stride * static_cast<std::size_t>(n), -7.0F);
        table.matmul(matrix, 0, cut, input, n, out.data(), stride);
        table.matmul(matrix, cut, matrix.n_panels(), input, n, out.data(), stride);
        return out;
    }

    /// Token by token, as decode does it.
    std::vector<float> run_singly(const CpuKernels& table) const {
        const auto stride = static_cast<std::size_t>(matrix.padded_rows());
        const auto width = static_cast<std::size_t>(matrix.columns);
        std::vector<float> out(stride * static_cast<std::size_t>(n));
        for (std::size_t t = 0; t < static_cast<std::size_t>(n); ++t) {
            Activations one = input;
            one.values += t * width;
            if (matrix.quantised()) {
                one.codes += t * width;
                one.scales += t * width / kBlockColumns;
                one.sums += t * width / kBlockColumns;
            }
            table.matmul(matrix, 0, matrix.n_panels(), one, 1, out.data() + t * stride, stride);
        }
        return out;
    }

    test::StoredTensor stored;
    int n;
    PackedMatrix matrix;
    std::vector<std::byte> memory;
    std::vector<float> values, scales, sums;
    std::vector<std::int16_t> codes;
    Activations input;
};

}  // namespace

TEST_SUITE("model/cpu/matmul") {
    TEST_CASE("every table gives the bits of the definition, for one token and for many") {
        for (const DType type : test::kAllTypes) {
            // 1024 columns are more than one slab of unpacked weights.
            for (const int columns : {256, 1024}) {
                for (const int rows : {1, 8, 23, 40}) {
                    for (const int tokens : {1, 2, 4, 7}) {
                        const Projection p(type, rows, columns, tokens);
                        const auto expected = p.run(scalar_kernels());
                        for (const CpuKernels* table : available_kernels()) {
                            CAPTURE(dtype_info(type).name);
                            CAPTURE(table->name);
                            CAPTURE(columns);
                            CAPTURE(rows);
                            CAPTURE(tokens);
                            CHECK(test::first_difference(p.run(*table), expected) == -1);
                            CHECK(test::first_difference(p.run_singly(*table), expected) == -1);
                        }
                    }
                }
            }
        }
    }

    TEST_CASE("cutting the panels or passing more tokens than a group changes no bit") {
        for (const DType type : {DType::q4_1, DType::q6_k, DType::f16}) {
            const Projection p(type, 56, 512, 70);
            for (const CpuKernels* table : available_kernels()) {
                if (table->isa == Isa::scalar) continue;
                const auto expected = p.run_singly(*table);
                for (int cut = 0; cut <= p.matrix.n_panels(); ++cut) {
                    CAPTURE(dtype_info(type).name);
                    CAPTURE(cut);
                    CHECK(test::first_difference(p.run(*table, cut), expected) == -1);
                }
            }
        }
    }

    TEST_CASE("float rows of any length: equal bits") {
        for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
            for (const int columns : {1, 2, 7, 20, 33, 400}) {
                const Projection p(type, 37, columns, 5);
                for (const CpuKernels* table : available_kernels()) {
                    CAPTURE(dtype_info(type).name);
                    CAPTURE(columns);
                    CHECK(test::first_difference(p.run(*table), p.run(scalar_kernels())) == -1);
                    CHECK(test::first_difference(p.run_singly(*table), p.run(scalar_kernels())) ==
                          -1);
                }
            }
        }
    }

    TEST_CASE("the definition agrees with products in double") {
        // Codes are off by half a step of amplitude / 32767 at most, f32 sums by 2^-24 a step.
        for (const DType type : test::kAllTypes) {
            const Projection p(type, 9, 512, 2);
            const auto out = p.run(scalar_kernels());
            std::vector<float> weights(9 * 512);
            dequantize(type, p.stored.bytes.data(), weights);
            for (std::size_t t = 0; t < 2; ++t) {
                for (std::size_t r = 0; r < 9; ++r) {
                    double exact = 0;
                    double bound = 0;
                    for (std::size_t k = 0; k < 512; ++k) {
                        const auto w = static_cast<double>(weights[r * 512 + k]);
                        const auto a = static_cast<double>(p.values[t * 512 + k]);
                        exact += w * a;
                        bound += std::fabs(w) * (3.0 * 0.51 / 32767 + std::fabs(a) * 512 * 0x1p-24);
                    }
                    // The minimum and the codes are folded separately: they can be larger than w.
                    CAPTURE(dtype_info(type).name);
                    CHECK(std::fabs(static_cast<double>(out[t * 16 + r]) - exact) <
                          4 * bound + 1e-4);
                }
            }
        }
    }
}
