#include "model/load/mxfp8.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "model/error.h"
#include "model/expect.h"
#include "model/load/quant.h"

namespace skein::model {
namespace {

/// Both factors have few bits, so that the product is exact in F32 unless it overflows.
class MxValues {
  public:
    MxValues(const Tensor& weight, const Tensor& scales) : weight_(weight), scales_(scales) {
        for (unsigned i = 0; i < 256; ++i) {
            elements_[i] = e4m3_to_f32(static_cast<std::uint8_t>(i));
            factors_[i] = i == 255 ? NAN : std::ldexp(1.0F, static_cast<int>(i) - 127);
        }
    }

    std::size_t size() const { return weight_.bytes; }
    float operator[](std::size_t i) const {
        const auto element = std::to_integer<unsigned>(weight_.data[i]);
        const auto scale = std::to_integer<unsigned>(scales_.data[i / kMxBlock]);
        return elements_[element] * factors_[scale];
    }

  private:
    const Tensor& weight_;
    const Tensor& scales_;
    std::array<float, 256> elements_{};
    std::array<float, 256> factors_{};
};

void check_scales(const Tensor& weight, const Tensor& scales, std::string_view where) {
    if (scales.type != DType::u8) {
        throw Error(
            fmt::format("{}: tensor '{}' has type {}, expected U8 (one power of two for "
                        "{} weights)",
                        where, scales.name, dtype_info(scales.type).name, kMxBlock));
    }
    const std::int64_t length = weight.row_length();
    if (length % kMxBlock != 0 || scales.row_length() != length / kMxBlock ||
        scales.n_rows() != weight.n_rows()) {
        throw Error(
            fmt::format("{}: tensor '{}' is {} rows of {}, expected one scale for every {} "
                        "weights of '{}', which is {} rows of {}",
                        where, scales.name, scales.n_rows(), scales.row_length(), kMxBlock,
                        weight.name, weight.n_rows(), length));
    }
}

/// Whether BF16, the upper half of F32, holds every value.
bool fits_bf16(const MxValues& values, const Tensor& weight, std::string_view where) {
    bool fits = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float value = values[i];
        if (!std::isfinite(value)) {
            const auto length = static_cast<std::size_t>(weight.row_length());
            throw Error(fmt::format("{}: tensor '{}' row {} column {} is not a finite number",
                                    where, weight.name, i / length, i % length));
        }
        fits = fits && (std::bit_cast<std::uint32_t>(value) & 0xFFFFU) == 0;
    }
    return fits;
}

}  // namespace

ConvertedTensor convert_mxfp8(const Tensor& weight, const Tensor& scales, std::string_view where) {
    expect(weight.type == DType::f8_e4m3, "only e4m3 weights are converted");
    check_scales(weight, scales, where);
    const MxValues values(weight, scales);
    ConvertedTensor out;
    out.tensor = weight;
    out.tensor.type = fits_bf16(values, weight, where) ? DType::bf16 : DType::f32;
    const std::size_t width = dtype_info(out.tensor.type).block_bytes;
    out.tensor.bytes = values.size() * width;
    out.memory = std::make_unique<std::byte[]>(out.tensor.bytes);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float value = values[i];
        // Little-endian, as checked in byte_cursor.h: the upper half comes second.
        std::array<std::byte, sizeof value> bytes;
        std::memcpy(bytes.data(), &value, sizeof value);
        std::memcpy(out.memory.get() + i * width, bytes.data() + sizeof value - width, width);
    }
    out.tensor.data = out.memory.get();
    return out;
}

}  // namespace skein::model
