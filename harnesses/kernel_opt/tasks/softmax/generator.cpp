// Move space of softmax: the exponential decides; vectors need a polynomial one.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

@VECTORS@@EXP@
constexpr int kAccumulators = @ACCUMULATORS@;
constexpr int kStep = kWidth * kAccumulators;

inline float highest_of(const float* in, std::int64_t n) {
    Vector best[kAccumulators];
    for (Vector& b : best) b = Vector{} + std::numeric_limits<float>::lowest();
    std::int64_t c = 0;
    for (; c + kStep <= n; c += kStep) {
#pragma GCC unroll 8
        for (int u = 0; u < kAccumulators; ++u) {
            const Vector v = load(in + c + u * kWidth);
            best[u] = v > best[u] ? v : best[u];
        }
    }
    float highest = max_of(best[0]);
    for (int u = 1; u < kAccumulators; ++u) {
        const float other = max_of(best[u]);
        highest = other > highest ? other : highest;
    }
    for (; c < n; ++c) highest = in[c] > highest ? in[c] : highest;
    return highest;
}

inline void softmax_row(const float* @RESTRICT@in, float* @RESTRICT@out, std::int64_t n) {
    const float highest = highest_of(in, n);
    Vector sums[kAccumulators] = {};
    std::int64_t c = 0;
    for (; c + kStep <= n; c += kStep) {
#pragma GCC unroll 8
        for (int u = 0; u < kAccumulators; ++u) {
            const Vector e = exp_of(load(in + c + u * kWidth) - highest);
@STORE_VECTOR@            sums[u] += e;
        }
    }
    float sum = 0;
    for (int u = 0; u < kAccumulators; ++u) sum += sum_of(sums[u]);
    for (; c < n; ++c) {
        const float e = exp_of(in[c] - highest);
@STORE_SCALAR@        sum += e;
    }

@SCALE@    for (c = 0; c + kStep <= n; c += kStep) {
#pragma GCC unroll 8
        for (int u = 0; u < kAccumulators; ++u) {
            const std::int64_t at = c + u * kWidth;
            store(out + at, @VECTOR_SOURCE@ @APPLY@);
        }
    }
    for (; c < n; ++c) out[c] = @SCALAR_SOURCE@ @APPLY@;
}

}  // namespace

extern "C" void softmax(const float* @RESTRICT@x, float* @RESTRICT@y, std::int64_t rows,
                        std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
        softmax_row(x + r * cols, y + r * cols, cols);
    }
}
)";

constexpr const char* kLibraryExp = R"(
inline float exp_of(float d) {
    return std::exp(d);
}
)";

class SoftmaxGenerator : public ChoiceGenerator {
  public:
    SoftmaxGenerator()
        : ChoiceGenerator(
              "softmax",
              {{"exp", "library call or polynomial of this degree", {"library", "6", "5"}},
               width_dimension({"1", "4", "8", "16"}),
               {"accumulators", "independent maxima and sums", {"1", "2", "4"}},
               {"exponentials",
                "keep them between the passes or compute them twice",
                {"store", "recompute"}},
               {"normalise",
                "divide every element or multiply by the reciprocal",
                {"divide", "reciprocal"}},
               restrict_dimension(),
               flags_dimension({"none", "-Ofast", "-funroll-loops"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        return choices.changed("exp") || !choices.changed("vector_width");
    }

    std::string body(const Choices& choices) const override {
        const int width = choices.number("vector_width");
        const bool store = choices.text("exponentials") == "store";
        const bool divide = choices.text("normalise") == "divide";
        return fill(
            kTemplate,
            {{"VECTORS", float_vectors(width) + sum_of_lanes(width) + max_of_lanes(width)},
             {"EXP",
              choices.changed("exp") ? polynomial_exp(width, choices.number("exp")) : kLibraryExp},
             {"ACCUMULATORS", choices.text("accumulators")},
             {"RESTRICT", choices.changed("restrict") ? "__restrict " : ""},
             {"STORE_VECTOR", store ? "            store(out + c + u * kWidth, e);\n" : ""},
             {"STORE_SCALAR", store ? "        out[c] = e;\n" : ""},
             {"SCALE", divide ? "" : "    const float scale = 1.0f / sum;\n"},
             {"APPLY", divide ? "/ sum" : "* scale"},
             {"VECTOR_SOURCE", store ? "load(out + at)" : "exp_of(load(in + at) - highest)"},
             {"SCALAR_SOURCE", store ? "out[c]" : "exp_of(in[c] - highest)"}});
    }
};

}  // namespace

const KernelGenerator& softmax_generator() {
    static const SoftmaxGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
