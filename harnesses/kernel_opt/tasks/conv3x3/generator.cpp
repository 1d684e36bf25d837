// Move space of conv3x3: a copy of the image with its border, then tiles of filters x columns
// summed in registers over all channels and taps.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

// Border tests inside the loops, as the anchor does, on one pixel of kFilters filters.
constexpr const char* kTested = R"(// The sums of F filters at one pixel.
template <int F>
inline void tile(const float* x, const float* weight, float* y, std::int64_t channels,
                 std::int64_t height, std::int64_t width, std::int64_t h, std::int64_t w) {
    float sums[F] = {};
    for (std::int64_t c = 0; c < channels; ++c) {
@TAP_UNROLL@        for (std::int64_t i = 0; i < 3; ++i) {
@TAP_UNROLL@            for (std::int64_t j = 0; j < 3; ++j) {
                const std::int64_t row = h + i - 1, column = w + j - 1;
                if (row < 0 || row >= height || column < 0 || column >= width) continue;
                const float pixel = x[(c * height + row) * width + column];
                const float* factors = weight + (c * 9 + i * 3 + j) * @TAP_STEP@;
#pragma GCC unroll 8
                for (int f = 0; f < F; ++f) sums[f] += pixel * factors[f * @FILTER_STEP@];
            }
        }
    }
    for (int f = 0; f < F; ++f) y[(f * height + h) * width + w] = sums[f];
}
)";

// `image` has a border of zeros and room for the last tile of every row.
constexpr const char* kPadded =
    R"(// The sums of F filters at kColumns adjacent pixels, of which `columns` are kept.
template <int F>
inline void tile(const float* image, const float* weight, float* y, std::int64_t channels,
                 std::int64_t height, std::int64_t width, std::int64_t h, std::int64_t w) {
    const std::int64_t stride = row_stride(width), plane = (height + 2) * stride;
    Vector sums[F][kVectors] = {};
    for (std::int64_t c = 0; c < channels; ++c) {
@TAP_UNROLL@        for (std::int64_t i = 0; i < 3; ++i) {
@TAP_UNROLL@            for (std::int64_t j = 0; j < 3; ++j) {
                const float* at = image + c * plane + (h + i) * stride + w + j;
                const float* factors = weight + (c * 9 + i * 3 + j) * @TAP_STEP@;
                Vector pixels[kVectors];
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) pixels[v] = load(at + v * kWidth);
#pragma GCC unroll 8
                for (int f = 0; f < F; ++f) {
                    const float factor = factors[f * @FILTER_STEP@];
#pragma GCC unroll 8
                    for (int v = 0; v < kVectors; ++v) sums[f][v] += factor * pixels[v];
                }
            }
        }
    }
    const std::int64_t columns = width - w < kColumns ? width - w : kColumns;
#pragma GCC unroll 8
    for (int f = 0; f < F; ++f) {
        float out[kColumns];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) store(out + v * kWidth, sums[f][v]);
        float* to = y + (f * height + h) * width + w;
        for (std::int64_t t = 0; t < columns; ++t) to[t] = out[t];
    }
}
)";

constexpr const char* kPaddedHelpers = R"(
constexpr int kVectors = @VECTOR_COUNT@;
constexpr int kColumns = kWidth * kVectors;

inline std::int64_t row_stride(std::int64_t width) {
    return (width + kColumns - 1) / kColumns * kColumns + 2;
}

std::vector<float> with_border(const float* x, std::int64_t channels, std::int64_t height,
                               std::int64_t width) {
    const std::int64_t stride = row_stride(width);
    std::vector<float> image(static_cast<std::size_t>(channels * (height + 2) * stride));
    for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t h = 0; h < height; ++h) {
            float* row = image.data() + (c * (height + 2) + h + 1) * stride + 1;
            for (std::int64_t w = 0; w < width; ++w) row[w] = x[(c * height + h) * width + w];
        }
    }
    return image;
}

)";

constexpr const char* kPackFunction = R"(
// The factors of F filters for one tap become adjacent.
template <int F>
void pack(const float* weight, std::int64_t taps, float* out) {
    for (std::int64_t t = 0; t < taps; ++t) {
        for (int f = 0; f < F; ++f) out[t * F + f] = weight[f * taps + t];
    }
}
)";

constexpr const char* kPack = R"(    const std::int64_t taps = channels * 9;
    std::vector<float> packed(static_cast<std::size_t>((f1 - f0) * taps));
    for (std::int64_t f = f0; f < f1; f += F) {
        pack<F>(weight + f * taps, taps, packed.data() + (f - f0) * taps);
    }
)";

constexpr const char* kTemplate = R"(#include <cstdint>
@INCLUDE@
namespace {

@DECLARATIONS@@TILE@@PACK_FUNCTION@
// Every pixel of the filters f0 to f1, F at a time.
template <int F>
void filters_from(const float* image, const float* weight, float* y, std::int64_t channels,
                  std::int64_t f0, std::int64_t f1, std::int64_t height, std::int64_t width) {
@PACK@    for (@OUTER@) {
        for (@INNER@) {
            for (std::int64_t w = 0; w < width; w += @COLUMNS@) {
                tile<F>(image, @WEIGHTS@, y + f * height * width, channels, height, width, h, w);
            }
        }
    }
}

}  // namespace

extern "C" void conv3x3(const float* x, const float* weight, float* y, std::int64_t channels,
                        std::int64_t filters, std::int64_t height, std::int64_t width) {
    constexpr int kFilters = @FILTERS@;
    const std::int64_t whole = filters / kFilters * kFilters;
@IMAGE@    filters_from<kFilters>(@SOURCE@, weight, y, channels, 0, whole, height, width);
    filters_from<1>(@SOURCE@, weight, y, channels, whole, filters, height, width);
}
)";

class Conv3x3Generator : public ChoiceGenerator {
  public:
    Conv3x3Generator()
        : ChoiceGenerator(
              "conv3x3",
              {{"border", "test every tap or copy the image with a border", {"test", "copy"}},
               {"filters", "filters a register tile holds", {"1", "2", "4", "6", "8"}},
               width_dimension({"1", "8", "16"}),
               {"tile_vectors", "vectors of columns a register tile holds", {"1", "2", "3"}},
               {"packing", "weights in the order of use", {"none", "weights"}},
               {"order", "the outer loop runs over filters or over rows", {"filters", "rows"}},
               {"taps", "loops over the 3 x 3 taps or straight code", {"loops", "unrolled"}},
               flags_dimension({"none", "-Ofast", "-funroll-loops"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        const bool vectors = choices.changed("vector_width") || choices.changed("tile_vectors");
        return (choices.changed("border") || !vectors) &&
               choices.number("filters") * choices.number("tile_vectors") <= 12;
    }

    std::string body(const Choices& choices) const override {
        const bool copied = choices.changed("border");
        const bool packed = choices.changed("packing");
        const bool by_filter = choices.text("order") == "filters";
        const std::string filters = "std::int64_t f = f0; f < f1; f += F";
        const std::string rows = "std::int64_t h = 0; h < height; ++h";
        const char* unroll = choices.changed("taps") ? "#pragma GCC unroll 3\n" : "";
        return fill(
            kTemplate,
            {{"INCLUDE", copied || packed ? "#include <vector>\n" : ""},
             {"DECLARATIONS", copied ? declarations(choices) : ""},
             {"TILE",
              fill(copied ? kPadded : kTested, {{"TAP_UNROLL", unroll},
                                                {"TAP_STEP", packed ? "F" : "1"},
                                                {"FILTER_STEP", packed ? "1" : "channels * 9"}})},
             {"PACK_FUNCTION", packed ? kPackFunction : ""},
             {"PACK", packed ? kPack : ""},
             {"WEIGHTS", packed ? "packed.data() + (f - f0) * taps" : "weight + f * channels * 9"},
             {"OUTER", by_filter ? filters : rows},
             {"INNER", by_filter ? rows : filters},
             {"COLUMNS", copied ? "kColumns" : "1"},
             {"FILTERS", choices.text("filters")},
             {"IMAGE", copied ? "    const std::vector<float> image = with_border(x, channels, "
                                "height, width);\n"
                              : ""},
             {"SOURCE", copied ? "image.data()" : "x"}});
    }

    static std::string declarations(const Choices& choices) {
        return float_vectors(choices.number("vector_width")) +
               fill(kPaddedHelpers, {{"VECTOR_COUNT", choices.text("tile_vectors")}});
    }
};

}  // namespace

const KernelGenerator& conv3x3_generator() {
    static const Conv3x3Generator generator;
    return generator;
}

}  // namespace skein::harnesses
