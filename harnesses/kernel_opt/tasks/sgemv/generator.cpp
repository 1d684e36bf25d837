// Move space of sgemv: rows side by side share the loads of x, accumulators hide the latency of the
// additions.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <cstdint>

namespace {

@VECTORS@
constexpr int kRows = @ROWS@;
constexpr int kAccumulators = @ACCUMULATORS@;
constexpr int kStep = kWidth * kAccumulators;

// y[r] = a[r, :] * x for R adjacent rows.
template <int R>
inline void dot_rows(const float* @RESTRICT@a, const float* @RESTRICT@x, float* @RESTRICT@y,
                     std::int64_t n) {
    Vector sums[R][kAccumulators] = {};
    std::int64_t j = 0;
    for (; j + kStep <= n; j += kStep) {
        Vector parts[kAccumulators];
#pragma GCC unroll 8
        for (int u = 0; u < kAccumulators; ++u) parts[u] = load(x + j + u * kWidth);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const float* row = a + r * n + j;
@PREFETCH@#pragma GCC unroll 8
            for (int u = 0; u < kAccumulators; ++u) {
                sums[r][u] += load(row + u * kWidth) * parts[u];
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        Vector total = sums[r][0];
        for (int u = 1; u < kAccumulators; ++u) total += sums[r][u];
        float sum = sum_of(total);
        for (std::int64_t t = j; t < n; ++t) sum += a[r * n + t] * x[t];
        y[r] = sum;
    }
}

}  // namespace

extern "C" void sgemv(const float* @RESTRICT@a, const float* @RESTRICT@x, float* @RESTRICT@y,
                      std::int64_t m, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + kRows <= m; i += kRows) dot_rows<kRows>(a + i * n, x, y + i, n);
    for (; i < m; ++i) dot_rows<1>(a + i * n, x, y + i, n);
}
)";

class SgemvGenerator : public ChoiceGenerator {
  public:
    SgemvGenerator()
        : ChoiceGenerator(
              "sgemv", {{"rows", "rows computed together, sharing x", {"1", "2", "4", "8"}},
                        width_dimension({"1", "4", "8", "16"}),
                        {"accumulators", "independent sums a row", {"1", "2", "4"}},
                        {"prefetch", "bytes fetched ahead in every row", {"none", "256", "1024"}},
                        restrict_dimension(),
                        flags_dimension({"none", "-Ofast", "-funroll-loops"})}) {}

  private:
    bool allowed(const Choices& choices) const override {
        return choices.number("rows") * choices.number("accumulators") <= 16;
    }

    std::string body(const Choices& choices) const override {
        const int width = choices.number("vector_width");
        const int ahead = choices.number("prefetch") / 4;
        return fill(kTemplate, {{"VECTORS", float_vectors(width) + sum_of_lanes(width)},
                                {"ROWS", choices.text("rows")},
                                {"ACCUMULATORS", choices.text("accumulators")},
                                {"PREFETCH", ahead == 0 ? ""
                                                        : "            __builtin_prefetch(row + " +
                                                              std::to_string(ahead) + ");\n"},
                                {"RESTRICT", choices.changed("restrict") ? "__restrict " : ""}});
    }
};

}  // namespace

const KernelGenerator& sgemv_generator() {
    static const SgemvGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
