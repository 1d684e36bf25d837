#include "harnesses/kernel_opt/tasks/choice_generator.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace skein::harnesses {

namespace {

// Vectors wider than the machine's are split by the compiler; no call of ours crosses a library.
constexpr const char* kQuiet = "#pragma GCC diagnostic ignored \"-Wpsabi\"\n";

}  // namespace

const Dimension& Choices::dimension(std::string_view name) const {
    for (const Dimension& dimension : dimensions_) {
        if (dimension.name == name) return dimension;
    }
    throw std::logic_error(fmt::format("no dimension '{}'", name));
}

int Choices::index(std::string_view name) const {
    return configuration_[static_cast<std::size_t>(&dimension(name) - dimensions_.data())];
}

const std::string& Choices::text(std::string_view name) const {
    return dimension(name).values[static_cast<std::size_t>(index(name))];
}

int Choices::number(std::string_view name) const {
    const std::string& value = text(name);
    int result = 0;
    std::from_chars(value.data(), value.data() + value.size(), result);
    return result;
}

bool ChoiceGenerator::legal(const Configuration& configuration) const {
    if (configuration.size() != dimensions_.size()) return false;
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        const auto values = static_cast<int>(dimensions_[i].values.size());
        if (configuration[i] < 0 || configuration[i] >= values) return false;
    }
    return allowed(Choices(dimensions_, configuration));
}

std::string ChoiceGenerator::source(const Configuration& configuration) const {
    if (!legal(configuration)) {
        throw std::invalid_argument(fmt::format("{}: not a legal configuration", task_id_));
    }
    std::string text = fmt::format("// {}, written out from these choices:\n", task_id_);
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        const Dimension& dimension = dimensions_[i];
        const std::string& value = dimension.values[static_cast<std::size_t>(configuration[i])];
        text += fmt::format("//   {:<14} {:<14} {}\n", dimension.name, value, dimension.help);
    }
    return text + body(Choices(dimensions_, configuration));
}

std::vector<std::string> ChoiceGenerator::flags(const Configuration& configuration) const {
    const std::string& flag = Choices(dimensions_, configuration).text("flags");
    if (flag == "none") return {};
    return {flag};
}

std::string fill(std::string_view text,
                 const std::vector<std::pair<std::string_view, std::string>>& values) {
    std::string result;
    while (true) {
        const std::size_t start = text.find('@');
        result += text.substr(0, start);
        if (start == std::string_view::npos) return result;
        const std::size_t end = text.find('@', start + 1);
        if (end == std::string_view::npos) throw std::logic_error("template: unclosed @");
        const std::string_view name = text.substr(start + 1, end - start - 1);
        bool found = false;
        for (const auto& [key, value] : values) {
            if (key != name) continue;
            result += value;
            found = true;
        }
        if (!found) throw std::logic_error(fmt::format("template: no value for @{}@", name));
        text.remove_prefix(end + 1);
    }
}

std::string float_vectors(int width) {
    if (width == 1) {
        return R"(constexpr int kWidth = 1;
typedef float Vector;

inline Vector load(const float* p) {
    return *p;
}
inline void store(float* p, Vector v) {
    *p = v;
}
)";
    }
    return fill(R"(@QUIET@constexpr int kWidth = @WIDTH@;
typedef float Vector __attribute__((vector_size(@BYTES@)));
typedef float Unaligned __attribute__((vector_size(@BYTES@), aligned(4), may_alias));

inline Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
inline void store(float* p, const Vector& v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}
)",
                {{"QUIET", width == 16 ? kQuiet : ""},
                 {"WIDTH", std::to_string(width)},
                 {"BYTES", std::to_string(width * 4)}});
}

std::string sum_of_lanes(int width) {
    if (width == 1) return "inline float sum_of(Vector v) {\n    return v;\n}\n";
    return R"(inline float sum_of(const Vector& v) {
    float sum = v[0];
    for (int lane = 1; lane < kWidth; ++lane) sum += v[lane];
    return sum;
}
)";
}

std::string max_of_lanes(int width) {
    if (width == 1) return "inline float max_of(Vector v) {\n    return v;\n}\n";
    return R"(inline float max_of(const Vector& v) {
    float best = v[0];
    for (int lane = 1; lane < kWidth; ++lane) best = v[lane] > best ? v[lane] : best;
    return best;
}
)";
}

std::string streaming_store(int width) {
    const char* call = "_mm_stream_si128";
    const char* type = "__m128i";
    const char* condition = "__SSE2__";
    if (width == 8) {
        call = "_mm256_stream_si256";
        type = "__m256i";
        condition = "__AVX__";
    } else if (width == 16) {
        call = "_mm512_stream_si512";
        type = "__m512i";
        condition = "__AVX512F__";
    }
    return fill(R"(
// Past the caches when the address allows it; stores_done() orders these stores at the end.
inline void stream(float* p, const Vector& v, [[maybe_unused]] bool aligned) {
#ifdef @CONDITION@
    if (aligned) {
        @CALL@(reinterpret_cast<@TYPE@*>(p), reinterpret_cast<@TYPE@>(v));
        return;
    }
#endif
    store(p, v);
}
inline bool is_aligned(const float* p) {
    return reinterpret_cast<std::uintptr_t>(p) % sizeof(Vector) == 0;
}
inline void stores_done() {
#ifdef __SSE2__
    _mm_sfence();
#endif
}
)",
                {{"CONDITION", condition}, {"CALL", call}, {"TYPE", type}});
}

std::string polynomial_exp(int width, int degree) {
    // Minimax coefficients of 2^f on [-0.5, 0.5] for the relative error, by Remez exchange:
    // 7.5e-8 for degree 5 and 1.9e-9 for degree 6, before rounding.
    const char* terms = degree == 5 ? R"(    T p = f * 1.327647245e-03f + 9.675540961e-03f;
    p = p * f + 5.550713092e-02f;
    p = p * f + 2.402212024e-01f;
    p = p * f + 6.931469440e-01f;
    return p * f + 1.000000119e+00f;
)"
                                    : R"(    T p = f * 1.534581243e-04f + 1.339993090e-03f;
    p = p * f + 9.618489072e-03f;
    p = p * f + 5.550328642e-02f;
    p = p * f + 2.402264625e-01f;
    p = p * f + 6.931471825e-01f;
    return p * f + 1.0f;
)";
    std::string text = fill(R"(
// 2^f for f in [-0.5, 0.5].
template <typename T>
inline T power_of_two(const T& f) {
@TERMS@}

// exp(d) for d <= 0 as 2^n * 2^f with n + f = d * log2(e). Results below 2^-126 become 2^-126.
inline float exp_of(float d) {
    float t = d * 1.44269504f;
    t = t > -126.0f ? t : -126.0f;
    const int n = static_cast<int>(t - 0.5f);
    return power_of_two(t - static_cast<float>(n)) * std::bit_cast<float>((n + 127) << 23);
}
)",
                            {{"TERMS", terms}});
    if (width == 1) return text;
    return text + fill(R"(
typedef std::int32_t Integers __attribute__((vector_size(@BYTES@)));

inline Vector exp_of(const Vector& d) {
    Vector t = d * 1.44269504f;
    t = t > -126.0f ? t : Vector{} - 126.0f;
    const Integers n = __builtin_convertvector(t - 0.5f, Integers);
    const Vector f = t - __builtin_convertvector(n, Vector);
    return power_of_two(f) * std::bit_cast<Vector>((n + 127) << 23);
}
)",
                       {{"BYTES", std::to_string(width * 4)}});
}

Dimension width_dimension(std::vector<std::string> values) {
    return {"vector_width", "elements one vector operation handles", std::move(values)};
}

Dimension flags_dimension(std::vector<std::string> values) {
    return {"flags", "compiler flag added to the task's", std::move(values)};
}

Dimension restrict_dimension() {
    return {"restrict", "promise that the buffers do not overlap", {"no", "yes"}};
}

Dimension store_dimension() {
    return {"store", "keep results in the caches or stream past them", {"plain", "stream"}};
}

}  // namespace skein::harnesses
