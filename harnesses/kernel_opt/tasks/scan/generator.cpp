// Move space of scan, the control: the anchor is the tuned point, so little can be gained, and the
// search should say so.

#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "harnesses/kernel_opt/tasks/generators.h"

namespace skein::harnesses {

namespace {

constexpr const char* kTemplate = R"(#include <cstdint>

namespace {

@VECTORS@
constexpr int kUnroll = @UNROLL@;
constexpr int kStep = kWidth * kUnroll;

}  // namespace

extern "C" void scan(const std::int32_t* @RESTRICT@x, std::int32_t* @RESTRICT@y, std::int64_t n) {
    std::int32_t sum = 0;
    std::int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
@PREFETCH@        // Sums inside each vector first; only the carry goes from vector to vector.
        Vector parts[kUnroll];
#pragma GCC unroll 8
        for (int u = 0; u < kUnroll; ++u) parts[u] = prefix(load(x + i + u * kWidth));
#pragma GCC unroll 8
        for (int u = 0; u < kUnroll; ++u) {
            store(y + i + u * kWidth, parts[u] + sum);
            sum += last(parts[u]);
        }
    }
    for (; i < n; ++i) {
        sum += x[i];
        y[i] = sum;
    }
}
)";

constexpr const char* kScalars = R"(constexpr int kWidth = 1;
typedef std::int32_t Vector;

inline Vector load(const std::int32_t* p) {
    return *p;
}
inline void store(std::int32_t* p, Vector v) {
    *p = v;
}
inline Vector prefix(Vector v) {
    return v;
}
inline std::int32_t last(Vector v) {
    return v;
}
)";

constexpr const char* kVectors = R"(constexpr int kWidth = @WIDTH@;
typedef std::int32_t Vector __attribute__((vector_size(@BYTES@)));
typedef std::int32_t Unaligned __attribute__((vector_size(@BYTES@), aligned(4), may_alias));

inline Vector load(const std::int32_t* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
inline void store(std::int32_t* p, const Vector& v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}
// Adds the vector shifted by 1, 2, 4 ... lanes; zeros come in.
inline Vector prefix(Vector v) {
    const Vector zero = {};
@SHIFTS@    return v;
}
inline std::int32_t last(const Vector& v) {
    return v[kWidth - 1];
}
)";

// Lanes 0 to width - 1 of a shuffle are zeros, the next ones the vector's.
std::string shifts(int width) {
    std::string text;
    for (int distance = 1; distance < width; distance *= 2) {
        text += "    v += __builtin_shufflevector(zero, v";
        for (int lane = 0; lane < width; ++lane) {
            text += ", " + std::to_string(lane < distance ? 0 : width + lane - distance);
        }
        text += ");\n";
    }
    return text;
}

class ScanGenerator : public ChoiceGenerator {
  public:
    ScanGenerator()
        : ChoiceGenerator("scan",
                          {width_dimension({"4", "1", "8"}),
                           {"unroll", "vectors a step handles", {"4", "1", "2"}},
                           {"prefetch", "bytes fetched ahead", {"none", "512", "2048"}},
                           {"restrict", "promise that the buffers do not overlap", {"yes", "no"}},
                           flags_dimension({"none", "-funroll-loops", "-O2"})}) {}

  private:
    bool allowed(const Choices&) const override { return true; }

    std::string body(const Choices& choices) const override {
        const int width = choices.number("vector_width");
        const int ahead = choices.number("prefetch") / 4;
        const std::string vectors = width == 1
                                        ? kScalars
                                        : fill(kVectors, {{"WIDTH", std::to_string(width)},
                                                          {"BYTES", std::to_string(width * 4)},
                                                          {"SHIFTS", shifts(width)}});
        return fill(kTemplate,
                    {{"VECTORS", vectors},
                     {"UNROLL", choices.text("unroll")},
                     {"RESTRICT", choices.text("restrict") == "yes" ? "__restrict " : ""},
                     {"PREFETCH", ahead == 0 ? ""
                                             : "        __builtin_prefetch(x + i + " +
                                                   std::to_string(ahead) + ");\n"}});
    }
};

}  // namespace

const KernelGenerator& scan_generator() {
    static const ScanGenerator generator;
    return generator;
}

}  // namespace skein::harnesses
