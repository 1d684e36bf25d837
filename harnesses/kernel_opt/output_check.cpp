#include "harnesses/kernel_opt/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace skein::harnesses {
namespace {

using tools::ElementType;

template <class T>
T element_at(std::span<const std::byte> bytes, std::size_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof value);
    return value;
}

/// Root mean square of the finite elements of one row of the oracle.
double row_scale(std::span<const std::byte> want, std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const double value = element_at<double>(want, i);
        if (std::isfinite(value)) sum += value * value;
    }
    return std::sqrt(sum / static_cast<double>(end - begin));
}

template <class T>
bool is_poison(T value, std::uint32_t poison) {
    std::uint32_t words[sizeof(T) / 4];
    std::memcpy(words, &value, sizeof value);
    return words[0] == poison && words[sizeof(T) / 4 - 1] == poison;
}

double error_of(double got, double want, double scale) {
    if (got == want) return 0;
    if (std::isnan(got) && std::isnan(want)) return 0;
    if (!std::isfinite(got) || !std::isfinite(want) || scale == 0) {
        return std::numeric_limits<double>::infinity();
    }
    return std::abs(got - want) / scale;
}

template <class T>
OutputCheck check_floats(const OutputRule& rule, std::span<const std::byte> got,
                         std::span<const std::byte> want, double allowed, std::uint32_t poison) {
    OutputCheck check;
    const std::size_t n = got.size() / sizeof(T);
    const std::size_t row = std::clamp<std::size_t>(rule.row, 1, std::max<std::size_t>(n, 1));
    for (std::size_t begin = 0; begin < n; begin += row) {
        const std::size_t end = std::min(n, begin + row);
        const double scale = rule.exact ? 0 : row_scale(want, begin, end);
        for (std::size_t i = begin; i < end; ++i) {
            const T value = element_at<T>(got, i);
            const double wanted = element_at<double>(want, i);
            const double error = error_of(static_cast<double>(value), wanted, scale);
            if (error <= check.worst_error) continue;
            check.worst_error = error;
            check.index = i;
            check.got = static_cast<double>(value);
            check.want = wanted;
            if (error <= allowed) continue;
            check.fault = OutputFault::wrong;
            if (is_poison(value, poison)) {
                check.fault = OutputFault::unwritten;
            } else if (!std::isfinite(value)) {
                check.fault = OutputFault::nonfinite;
            }
            if (std::isinf(error)) return check;  // nothing can be worse
        }
    }
    return check;
}

template <class T>
OutputCheck check_integers(std::span<const std::byte> got, std::span<const std::byte> want) {
    OutputCheck check;
    for (std::size_t i = 0; i < got.size() / sizeof(T); ++i) {
        const T value = element_at<T>(got, i), wanted = element_at<T>(want, i);
        if (value == wanted) continue;
        check.fault = OutputFault::wrong;
        check.worst_error = 1;
        check.index = i;
        check.got = static_cast<double>(value);
        check.want = static_cast<double>(wanted);
        break;
    }
    return check;
}

}  // namespace

bool oracle_is_double(ElementType type) {
    return type == ElementType::f32 || type == ElementType::f64;
}

std::size_t oracle_bytes(ElementType type) {
    return oracle_is_double(type) ? sizeof(double) : tools::element_bytes(type);
}

double epsilon_of(ElementType type) {
    if (type == ElementType::f32) return std::numeric_limits<float>::epsilon();
    if (type == ElementType::f64) return std::numeric_limits<double>::epsilon();
    return 0;
}

OutputCheck check_output(const OutputRule& rule, std::span<const std::byte> got,
                         std::span<const std::byte> want, double allowed, std::uint32_t poison) {
    const std::size_t n = got.size() / tools::element_bytes(rule.type);
    if (want.size() != n * oracle_bytes(rule.type)) {
        throw std::runtime_error(fmt::format("the oracle gave {} bytes for {} elements",
                                             want.size(), n));
    }
    switch (rule.type) {
        case ElementType::f32: return check_floats<float>(rule, got, want, allowed, poison);
        case ElementType::f64: return check_floats<double>(rule, got, want, allowed, poison);
        case ElementType::i8: return check_integers<std::int8_t>(got, want);
        case ElementType::u8: return check_integers<std::uint8_t>(got, want);
        case ElementType::i32: return check_integers<std::int32_t>(got, want);
        case ElementType::u32: return check_integers<std::uint32_t>(got, want);
        case ElementType::i64: return check_integers<std::int64_t>(got, want);
    }
    throw std::logic_error("element type");
}

double scaled_error(const OutputRule& rule, std::span<const std::byte> got,
                    std::span<const std::byte> want) {
    return check_output(rule, got, want, std::numeric_limits<double>::infinity(), 0).worst_error;
}

}  // namespace skein::harnesses
