// Block formats against values computed by the gguf Python package, bit for bit.
#include "model/load/quant.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "model/load/safetensors.h"
#include "support/gguf_writer.h"
#include "support/model_error.h"

using namespace skein::model;
using skein::test::contains;
using skein::test::error_text;

namespace {

struct Fixture {
    std::string file =
        skein::test::read_file(SKEIN_TEST_DATA "/fixtures/quants/blocks.safetensors");
    std::map<std::string, SafetensorsEntry> entries;
    Fixture() {
        const std::span<const char> bytes(file);
        for (auto& entry : parse_safetensors(std::as_bytes(bytes), "blocks").entries) {
            entries.emplace(entry.name, entry);
        }
    }
    std::vector<float> floats(const std::string& name) const {
        const auto data = entries.at(name).data;
        std::vector<float> values(data.size() / sizeof(float));
        std::memcpy(values.data(), data.data(), data.size());
        return values;
    }
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

constexpr DType kAll[] = {DType::f16,  DType::bf16, DType::q4_0,  DType::q4_1,
                          DType::q5_0, DType::q5_1, DType::q8_0,  DType::q4_k,
                          DType::q5_k, DType::q6_k, DType::iq4_nl};
constexpr DType kWritable[] = {DType::f16,  DType::bf16, DType::q8_0, DType::q4_0,
                               DType::q4_1, DType::q5_0, DType::q5_1};

}  // namespace

TEST_SUITE("model/load/quant") {
    TEST_CASE("every format decodes to the bits of the reference") {
        const Fixture fixture;
        for (const DType type : kAll) {
            const std::string name(dtype_info(type).name);
            CAPTURE(name);
            const SafetensorsEntry& raw = fixture.entries.at(name + ".raw");
            CHECK(raw.shape[1] == dtype_info(type).block_bytes);
            const std::vector<float> expected = fixture.floats(name + ".values");
            std::vector<float> actual(expected.size());
            dequantize(type, raw.data.data(), actual);
            CHECK(same_bits(actual, expected));
        }
    }

    TEST_CASE("every writable format encodes to the bytes of the reference") {
        const Fixture fixture;
        const std::vector<float> input = fixture.floats("quantize.input");
        for (const DType type : kWritable) {
            const std::string name(dtype_info(type).name);
            CAPTURE(name);
            const auto expected = fixture.entries.at("quantize." + name).data;
            std::vector<std::byte> actual(expected.size());
            quantize(type, input, actual.data());
            CHECK(std::memcmp(actual.data(), expected.data(), expected.size()) == 0);
        }
    }

    TEST_CASE("f32 survives a round trip and decoding needs no alignment") {
        const std::vector<float> values{1.5F, -0.0F, 3e38F, 1e-42F};
        std::vector<std::byte> bytes(1 + values.size() * 4);
        quantize(DType::f32, values, bytes.data() + 1);
        std::vector<float> back(values.size());
        dequantize(DType::f32, bytes.data() + 1, back);
        CHECK(same_bits(back, values));
    }

    TEST_CASE("every half converts to float and back to the same bits") {
        for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
            const auto half = static_cast<std::uint16_t>(bits);
            const float value = f16_to_f32(half);
            if (std::isnan(value)) {
                if (!std::isnan(f16_to_f32(f32_to_f16(value)))) FAIL_CHECK("NaN lost: " << bits);
            } else if (f32_to_f16(value) != half) {
                FAIL_CHECK("f16 " << bits);
            }
            const float wide = bf16_to_f32(half);
            if (!std::isnan(wide) && f32_to_bf16(wide) != half) FAIL_CHECK("bf16 " << bits);
        }
    }

    TEST_CASE("conversion to half rounds to nearest even and overflows to infinity") {
        CHECK(f16_to_f32(0x3C00) == 1.0F);
        CHECK(f16_to_f32(0x0001) == 0x1p-24F);
        CHECK(f32_to_f16(1.0F + 0x1p-11F) == 0x3C00);      // tie, even below
        CHECK(f32_to_f16(1.0F + 3 * 0x1p-11F) == 0x3C02);  // tie, even above
        CHECK(f32_to_f16(0x1p-25F) == 0x0000);             // tie at half of the smallest
        CHECK(f32_to_f16(std::nextafter(0x1p-25F, 1.0F)) == 0x0001);
        CHECK(f32_to_f16(65519.0F) == 0x7BFF);
        CHECK(f32_to_f16(65520.0F) == 0x7C00);
        CHECK(f32_to_f16(-1e30F) == 0xFC00);
        CHECK(f32_to_bf16(1.0F + 0x1p-8F) == 0x3F80);
        CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
        CHECK(std::isnan(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::quiet_NaN()))));
    }

    TEST_CASE("a NaN or infinite weight is encoded without undefined behaviour") {
        for (const float bad :
             {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            std::vector<float> values(32, 1.0F);
            values[5] = bad;
            for (const DType type : kWritable) {
                std::vector<std::byte> bytes(32 * 4);
                quantize(type, values, bytes.data());
            }
        }
    }

    TEST_CASE("a format without an encoder is refused by name") {
        const std::vector<float> values(256, 1.0F);
        std::vector<std::byte> bytes(256);
        const std::string text = error_text([&] { quantize(DType::q6_k, values, bytes.data()); });
        CHECK(contains(text, "Q6_K can be read but not written"));
    }
}
