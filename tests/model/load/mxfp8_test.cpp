#include "model/load/mxfp8.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "model/load/quant.h"
#include "model/load/weights.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"

namespace json = boost::json;
using namespace skein::model;
using namespace skein::test;

namespace {

Tensor view(DType type, std::int64_t row_length, std::int64_t n_rows,
            const std::vector<std::uint8_t>& bytes) {
    Tensor tensor;
    tensor.name = type == DType::u8 ? "w_scale_inv" : "w";
    tensor.type = type;
    tensor.dims = {row_length, n_rows, 1, 1};
    tensor.n_dims = 2;
    tensor.data = reinterpret_cast<const std::byte*>(bytes.data());
    tensor.bytes = bytes.size();
    return tensor;
}

std::vector<float> decode(const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.row_length() * tensor.n_rows()));
    dequantize(tensor.type, tensor.data, values);
    return values;
}

/// One row of 32 weights that are all `code`, with one scale.
ConvertedTensor convert(std::uint8_t code, std::uint8_t scale) {
    const std::vector<std::uint8_t> codes(32, code);
    const std::vector<std::uint8_t> scales{scale};
    return convert_mxfp8(view(DType::f8_e4m3, 32, 1, codes), view(DType::u8, 1, 1, scales), "f");
}

}  // namespace

TEST_SUITE("model/load/mxfp8") {
    TEST_CASE("e4m3 bytes have the values of the OCP specification") {
        CHECK(e4m3_to_f32(0x00) == 0.0F);
        CHECK(e4m3_to_f32(0x01) == 0x1p-9F);
        CHECK(e4m3_to_f32(0x07) == 0x7p-9F);
        CHECK(e4m3_to_f32(0x08) == 0x1p-6F);
        CHECK(e4m3_to_f32(0x38) == 1.0F);
        CHECK(e4m3_to_f32(0xB9) == -1.125F);
        CHECK(e4m3_to_f32(0x7E) == 448.0F);
        CHECK(std::isnan(e4m3_to_f32(0x7F)));
        CHECK(std::isnan(e4m3_to_f32(0xFF)));
    }

    TEST_CASE("every product is exact, in BF16 where BF16 can hold it") {
        CHECK(convert(0x38, 127).tensor.type == DType::bf16);
        CHECK(decode(convert(0x39, 130).tensor)[31] == 9.0F);
        CHECK(decode(convert(0x7E, 245).tensor)[0] == 448.0F * 0x1p118F);
        // The smallest numbers need more bits than BF16 has below its normal range.
        CHECK(convert(0x01, 0).tensor.type == DType::f32);
        CHECK(decode(convert(0x01, 0).tensor)[0] == 0x1p-136F);
        CHECK(convert(0x08, 0).tensor.type == DType::bf16);
        CHECK(decode(convert(0x08, 0).tensor)[0] == 0x1p-133F);
    }

    TEST_CASE("values that are no numbers and scales that do not fit are refused") {
        const auto refusal = [](std::uint8_t code, std::uint8_t scale) {
            return error_text([&] { convert(code, scale); });
        };
        CHECK(contains(refusal(0x7F, 127), "'w' row 0 column 0 is not a finite number"));
        CHECK(contains(refusal(0x38, 255), "is not a finite number"));
        CHECK(contains(refusal(0x7E, 254), "is not a finite number"));

        const std::vector<std::uint8_t> codes(64, 0x38);
        const std::vector<std::uint8_t> scales(4, 127);
        const Tensor weight = view(DType::f8_e4m3, 32, 2, codes);
        const auto with = [&](const Tensor& bad) {
            return error_text([&] { convert_mxfp8(weight, bad, "f"); });
        };
        CHECK(contains(with(view(DType::u8, 2, 2, scales)),
                       "'w_scale_inv' is 2 rows of 2, expected one scale for every 32 weights of "
                       "'w', which is 2 rows of 32"));
        CHECK(contains(with(view(DType::f32, 1, 1, scales)), "has type F32, expected U8"));
    }

    TEST_CASE("an 8-bit MiniMax-M3 folder binds to the exact values of its bytes") {
        const std::string folder = SKEIN_TEST_DATA "/fixtures/m3-mxfp8";
        const auto file = open_model_file(folder);
        const ModelConfig config = file->config();
        const Weights weights = bind_weights(*file, config);
        const json::value expected = json::parse(read_file(folder + "/expected.json"));
        CHECK(weights.converted.size() == expected.as_object().size());
        for (const Tensor& tensor : weights.derived) {
            CAPTURE(tensor.name);
            const json::value* want = expected.as_object().if_contains(tensor.name);
            REQUIRE(want != nullptr);
            CHECK((tensor.type == DType::f32) == want->at("needs_f32").as_bool());
            const std::vector<float> values = decode(tensor);
            double sum = 0.0;
            double sum_abs = 0.0;
            for (const float v : values) {
                sum += static_cast<double>(v);
                sum_abs += std::fabs(static_cast<double>(v));
            }
            const double tolerance = 1e-12 * want->at("sum_abs").to_number<double>();
            CHECK(std::fabs(sum - want->at("sum").to_number<double>()) <= tolerance);
            CHECK(std::fabs(sum_abs - want->at("sum_abs").to_number<double>()) <= tolerance);
            for (std::size_t i = 0; i < 4; ++i) {
                // The JSON reader may be off by the last bits of a double.
                const double first = want->at("first").at(i).to_number<double>();
                CHECK(std::fabs(static_cast<double>(values[i]) - first) <=
                      1e-15 * std::fabs(first));
            }
        }
        CHECK(weights.layers[2].router->type == DType::f32);
        CHECK(weights.layers[2].index_wq->type == DType::bf16);
    }

    TEST_CASE("a file can be described without converting anything") {
        const auto file = open_model_file(SKEIN_TEST_DATA "/fixtures/m3-mxfp8");
        const Weights weights = bind_weights(*file, file->config(), {.convert = false});
        CHECK(weights.converted.empty());
        CHECK(weights.layers[0].wq->type == DType::f8_e4m3);
    }
}
