// 3 x 3 convolution: the image is copied once with its border, then tiles of 6 filters x 16 columns
// are summed in registers over all channels and taps. Packed weights make a tap's 6 factors
// adjacent.
#include <cstdint>
#include <vector>

namespace {

typedef float Vector __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));

constexpr int kFilters = 6;
constexpr int kColumns = 16;

Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, Vector v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}

// `image` points at the tile's top left tap; `stride` separates rows and `plane` channels.
void tile(const float* image, std::int64_t stride, std::int64_t plane, const float* packed,
          std::int64_t channels, float* out) {
    Vector s00 = {}, s01 = {}, s10 = {}, s11 = {}, s20 = {}, s21 = {};
    Vector s30 = {}, s31 = {}, s40 = {}, s41 = {}, s50 = {}, s51 = {};
    for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t i = 0; i < 3; ++i) {
            for (std::int64_t j = 0; j < 3; ++j) {
                const float* at = image + c * plane + i * stride + j;
                const Vector x0 = load(at), x1 = load(at + 8);
                s00 += packed[0] * x0;
                s01 += packed[0] * x1;
                s10 += packed[1] * x0;
                s11 += packed[1] * x1;
                s20 += packed[2] * x0;
                s21 += packed[2] * x1;
                s30 += packed[3] * x0;
                s31 += packed[3] * x1;
                s40 += packed[4] * x0;
                s41 += packed[4] * x1;
                s50 += packed[5] * x0;
                s51 += packed[5] * x1;
                packed += kFilters;
            }
        }
    }
    const Vector sums[kFilters][2] = {{s00, s01}, {s10, s11}, {s20, s21},
                                      {s30, s31}, {s40, s41}, {s50, s51}};
    for (int f = 0; f < kFilters; ++f) {
        store(out + f * kColumns, sums[f][0]);
        store(out + f * kColumns + 8, sums[f][1]);
    }
}

}  // namespace

extern "C" void conv3x3(const float* x, const float* weight, float* y, std::int64_t channels,
                        std::int64_t filters, std::int64_t height, std::int64_t width) {
    const std::int64_t stride = (width + kColumns - 1) / kColumns * kColumns + 2;
    const std::int64_t plane = (height + 2) * stride;
    std::vector<float> image(static_cast<std::size_t>(channels * plane));
    for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t h = 0; h < height; ++h) {
            float* row = image.data() + c * plane + (h + 1) * stride + 1;
            for (std::int64_t w = 0; w < width; ++w) row[w] = x[(c * height + h) * width + w];
        }
    }
    std::vector<float> packed(static_cast<std::size_t>(channels * 9 * kFilters));
    for (std::int64_t f0 = 0; f0 < filters; f0 += kFilters) {
        for (std::int64_t t = 0; t < channels * 9; ++t) {
            for (std::int64_t f = 0; f < kFilters; ++f) {
                packed[static_cast<std::size_t>(t * kFilters + f)] =
                    f0 + f < filters ? weight[(f0 + f) * channels * 9 + t] : 0;
            }
        }
        for (std::int64_t h = 0; h < height; ++h) {
            for (std::int64_t w0 = 0; w0 < width; w0 += kColumns) {
                alignas(32) float out[kFilters * kColumns];
                tile(image.data() + h * stride + w0, stride, plane, packed.data(), channels, out);
                for (std::int64_t f = 0; f < kFilters && f0 + f < filters; ++f) {
                    for (std::int64_t w = 0; w < kColumns && w0 + w < width; ++w) {
                        y[((f0 + f) * height + h) * width + w0 + w] = out[f * kColumns + w];
                    }
                }
            }
        }
    }
}
