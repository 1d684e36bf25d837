// Move space of rmsnorm: a sum of squares, then a scaling pass over the same row.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <cmath>
#include <cstdint>
@INCLUDE@
namespace {

@VECTORS@@STREAM@
constexpr int kAccumulators = @ACCUMULATORS@;
constexpr int kSquareStep = kWidth * kAccumulators;
constexpr int kUnroll = @UNROLL@;
constexpr int kScaleStep = kWidth * kUnroll;

inline float sum_of_squares(const float* in, std::int64_t n) {
    Vector sums[kAccumulators] = {};
    std::int64_t c = 0;
    for (; c + kSquareStep <= n; c += kSquareStep) {
#pragma GCC unroll 8
        for (int u = 0; u < kAccumulators; ++u) {
            const Vector v = load(in + c + u * kWidth);
            sums[u] += v * v;
        }
    }
    Vector total = sums[0];
    for (int u = 1; u < kAccumulators; ++u) total += sums[u];
    float squares = sum_of(total);
    for (; c < n; ++c) squares += in[c] * in[c];
    return squares;
}

}  // namespace

extern "C" void rmsnorm(const float* @RESTRICT@x, const float* @RESTRICT@weight,
                        float* @RESTRICT@y, std::int64_t rows, std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        const float squares = sum_of_squares(in, cols);
        const float rms = std::sqrt(squares / static_cast<float>(cols) + 1e-6f);
@SCALE@        std::int64_t c = 0;
        for (; c + kScaleStep <= cols; c += kScaleStep) {
#pragma GCC unroll 8
            for (int u = 0; u < kUnroll; ++u) {
                const std::int64_t at = c + u * kWidth;
                @STORE@load(in + at) @APPLY@ * load(weight + at)@STORE_END@;
            }
        }
        for (; c < cols; ++c) out[c] = in[c] @APPLY@ * weight[c];
    }
@DONE@}
)";

class RmsnormGenerator : public ChoiceGenerator {
  public:
    RmsnormGenerator()
        : ChoiceGenerator(
              "rmsnorm", {width_dimension({"1", "4", "8", "16"}),
                          {"accumulators", "independent sums of squares", {"1", "2", "4", "8"}},
                          {"unroll", "vectors a step of the scaling pass handles", {"1", "2", "4"}},
                          {"scale",
                           "divide every element or multiply by the reciprocal",
                           {"divide", "reciprocal"}},
                          store_dimension(),
                          restrict_dimension(),
                          flags_dimension({"none", "-Ofast", "-funroll-loops"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        return choices.changed("vector_width") || !choices.changed("store");
    }

    std::string body(const Choices& choices) const override {
        const int width = choices.number("vector_width");
        const bool stream = choices.changed("store");
        const bool divide = choices.text("scale") == "divide";
        return fill(kTemplate,
                    {{"INCLUDE", stream ? kStreamIncludes : ""},
                     {"VECTORS", float_vectors(width) + sum_of_lanes(width)},
                     {"STREAM", stream ? streaming_store(width) : ""},
                     {"ACCUMULATORS", choices.text("accumulators")},
                     {"UNROLL", choices.text("unroll")},
                     {"RESTRICT", choices.changed("restrict") ? "__restrict " : ""},
                     {"SCALE", divide ? "" : "        const float scale = 1.0f / rms;\n"},
                     {"APPLY", divide ? "/ rms" : "* scale"},
                     {"STORE", stream ? "stream(out + at, " : "store(out + at, "},
                     {"STORE_END", stream ? ", is_aligned(out))" : ")"},
                     {"DONE", stream ? "    stores_done();\n" : ""}});
    }
};

}  // namespace

const KernelGenerator& rmsnorm_generator() {
    static const RmsnormGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
