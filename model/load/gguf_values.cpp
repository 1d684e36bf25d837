// Typed look-ups in GGUF metadata and its rendering as text.
#include <fmt/format.h>

#include <algorithm>

#include "model/error.h"
#include "model/load/byte_cursor.h"
#include "model/load/gguf.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

constexpr std::uint64_t kShownItems = 4;

[[noreturn]] void wrong_type(const GgufIndex& index, const GgufPair& pair, const char* wanted) {
    throw Error(fmt::format("{}: key '{}' must be {}, it is {} ({})", index.where,
                            printable(pair.key), wanted, gguf_value_type_name(pair.type),
                            describe_value(pair)));
}

/// The value as a non-negative integer, or nothing.
std::optional<std::uint64_t> as_unsigned(const GgufValue& value) {
    if (const auto* u = std::get_if<std::uint64_t>(&value)) return *u;
    const auto* i = std::get_if<std::int64_t>(&value);
    if (i != nullptr && *i >= 0) return static_cast<std::uint64_t>(*i);
    return std::nullopt;
}

/// Reads one element; the parser has already checked that all of them are inside the bytes.
GgufValue read_element(ByteCursor& in, GgufType type) {
    switch (type) {
        case GgufType::u8:
            return std::uint64_t{in.read<std::uint8_t>("")};
        case GgufType::u16:
            return std::uint64_t{in.read<std::uint16_t>("")};
        case GgufType::u32:
            return std::uint64_t{in.read<std::uint32_t>("")};
        case GgufType::u64:
            return in.read<std::uint64_t>("");
        case GgufType::i8:
            return std::int64_t{in.read<std::int8_t>("")};
        case GgufType::i16:
            return std::int64_t{in.read<std::int16_t>("")};
        case GgufType::i32:
            return std::int64_t{in.read<std::int32_t>("")};
        case GgufType::i64:
            return in.read<std::int64_t>("");
        case GgufType::f32:
            return double{in.read<float>("")};
        case GgufType::f64:
            return in.read<double>("");
        case GgufType::boolean:
            return in.read<std::uint8_t>("") != 0;
        case GgufType::string:
            return in.read_string(kGgufMaxStringBytes, "");
        case GgufType::array:
            break;
    }
    throw Error("gguf: nested array");
}

std::string scalar_text(const GgufValue& value) {
    if (const auto* u = std::get_if<std::uint64_t>(&value)) return fmt::format("{}", *u);
    if (const auto* i = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *i);
    if (const auto* d = std::get_if<double>(&value)) return fmt::format("{:.9g}", *d);
    if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
    if (const auto* s = std::get_if<std::string_view>(&value)) return printable(*s);
    return {};
}

}  // namespace

const GgufPair* GgufIndex::find(std::string_view key) const {
    const auto it = pair_by_key.find(key);
    return it == pair_by_key.end() ? nullptr : &pairs[it->second];
}

std::optional<std::uint64_t> GgufIndex::unsigned_value(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return std::nullopt;
    const std::optional<std::uint64_t> value = as_unsigned(pair->value);
    if (!value) wrong_type(*this, *pair, "a non-negative integer");
    return value;
}

std::optional<double> GgufIndex::float_value(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return std::nullopt;
    const auto* value = std::get_if<double>(&pair->value);
    if (value == nullptr) wrong_type(*this, *pair, "a floating-point number");
    return *value;
}

std::optional<bool> GgufIndex::bool_value(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return std::nullopt;
    const auto* value = std::get_if<bool>(&pair->value);
    if (value == nullptr) wrong_type(*this, *pair, "a bool");
    return *value;
}

std::optional<std::string_view> GgufIndex::string_value(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return std::nullopt;
    const auto* value = std::get_if<std::string_view>(&pair->value);
    if (value == nullptr) wrong_type(*this, *pair, "a string");
    return *value;
}

std::vector<std::uint64_t> GgufIndex::unsigned_values(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return {};
    const auto* array = std::get_if<GgufArray>(&pair->value);
    if (array == nullptr) return {*unsigned_value(key)};
    std::vector<std::uint64_t> values;
    values.reserve(static_cast<std::size_t>(array->count));
    ByteCursor in(array->bytes, where);
    for (std::uint64_t i = 0; i < array->count; ++i) {
        const std::optional<std::uint64_t> value = as_unsigned(read_element(in, array->element));
        if (!value) wrong_type(*this, *pair, "an array of non-negative integers");
        values.push_back(*value);
    }
    return values;
}

std::vector<bool> GgufIndex::bool_values(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return {};
    const auto* array = std::get_if<GgufArray>(&pair->value);
    if (array == nullptr) wrong_type(*this, *pair, "an array of bools");
    std::vector<bool> values;
    values.reserve(static_cast<std::size_t>(array->count));
    ByteCursor in(array->bytes, where);
    for (std::uint64_t i = 0; i < array->count; ++i) {
        const GgufValue value = read_element(in, array->element);
        const auto* flag = std::get_if<bool>(&value);
        const std::uint64_t number = flag != nullptr ? *flag : as_unsigned(value).value_or(2);
        if (number > 1) wrong_type(*this, *pair, "an array of bools");
        values.push_back(number == 1);
    }
    return values;
}

std::optional<std::vector<std::string_view>> GgufIndex::strings(std::string_view key) const {
    const GgufPair* pair = find(key);
    if (pair == nullptr) return std::nullopt;
    const auto* array = std::get_if<GgufArray>(&pair->value);
    if (array == nullptr || array->element != GgufType::string) {
        wrong_type(*this, *pair, "an array of strings");
    }
    std::vector<std::string_view> values;
    values.reserve(static_cast<std::size_t>(array->count));
    ByteCursor in(array->bytes, where);
    for (std::uint64_t i = 0; i < array->count; ++i) {
        values.push_back(in.read_string(kGgufMaxStringBytes, key));
    }
    return values;
}

std::string describe_value(const GgufPair& pair) {
    const auto* array = std::get_if<GgufArray>(&pair.value);
    if (array == nullptr) return scalar_text(pair.value);
    std::string out = fmt::format("{} x {} [", array->count, gguf_value_type_name(array->element));
    ByteCursor in(array->bytes, pair.key);
    for (std::uint64_t i = 0; i < std::min(array->count, kShownItems); ++i) {
        if (i > 0) out += ", ";
        out += scalar_text(read_element(in, array->element));
    }
    return out + (array->count > kShownItems ? ", ...]" : "]");
}

}  // namespace skein::model
