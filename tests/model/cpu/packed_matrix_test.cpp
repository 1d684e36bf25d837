#include "model/cpu/packed_matrix.h"

#include <doctest/doctest.h>

#include "model/error.h"
#include "tests/model/cpu/stored_blocks.h"

using namespace skein;
using namespace skein::model;

TEST_SUITE("model/cpu/packed_matrix") {
    TEST_CASE("a packed row unpacks to the bits that the stored row dequantises to") {
        for (const DType type : test::kAllTypes) {
            for (const int rows : {1, 7, 8, 9, 20}) {
                CAPTURE(dtype_info(type).name);
                CAPTURE(rows);
                const int columns = 768;
                const auto stored = test::stored_tensor(type, rows, columns, 5);
                PackedMatrix matrix = plan_packing(stored.tensor);
                std::vector<std::byte> memory(matrix.bytes());
                pack_panels(stored.tensor, matrix, 0, matrix.n_panels(), memory.data());
                matrix.data = memory.data();
                std::vector<float> expected(static_cast<std::size_t>(rows) * columns);
                dequantize(type, stored.bytes.data(), expected);
                std::vector<float> got(static_cast<std::size_t>(columns));
                int wrong = 0;
                for (int r = 0; r < rows; ++r) {
                    unpack_row(matrix, r, got);
                    const auto row = std::span(expected).subspan(
                        static_cast<std::size_t>(r) * columns, static_cast<std::size_t>(columns));
                    wrong += test::first_difference(got, row) >= 0;
                }
                CHECK(wrong == 0);
            }
        }
    }

    TEST_CASE("packing keeps the size of the common stored types") {
        const auto q4_1 = test::stored_tensor(DType::q4_1, 8, 64, 1);
        CHECK(plan_packing(q4_1.tensor).bytes() == q4_1.tensor.bytes);
        const auto q8_0 = test::stored_tensor(DType::q8_0, 8, 64, 1);
        CHECK(plan_packing(q8_0.tensor).bytes() == q8_0.tensor.bytes);
        const auto f16 = test::stored_tensor(DType::f16, 8, 64, 1);
        CHECK(plan_packing(f16.tensor).bytes() == f16.tensor.bytes);
    }

    TEST_CASE("a quantised row that is no whole number of blocks is refused by name") {
        auto stored = test::stored_tensor(DType::q8_0, 8, 64, 1);
        stored.tensor.dims[0] = 48;
        CHECK_THROWS_WITH_AS(plan_packing(stored.tensor), doctest::Contains("test"), Error);
    }
}
