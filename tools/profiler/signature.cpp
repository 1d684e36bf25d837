#include "tools/profiler/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace skein::tools {

namespace json = boost::json;

namespace {

constexpr int kMaxNesting = 64;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_identifier(std::string_view text) {
    return !text.empty() && is_name_start(text.front()) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return is_name_start(c) || is_digit(c); });
}

// expression := term (("+" | "-") term)*
// term       := factor (("*" | "/" | "%") factor)*
// factor     := "-" factor | "(" expression ")" | number | name | function
// function   := ("min" | "max" | "ceil_div") "(" expression "," expression ")"
// All arithmetic is exact in 64-bit integers; "/" truncates.
class Evaluator {
  public:
    Evaluator(std::string_view text, const Sizes& sizes) : text_(text), sizes_(sizes) {}

    std::int64_t evaluate() {
        const std::int64_t value = expression();
        skip_spaces();
        if (position_ != text_.size()) fail("unexpected text");
        return value;
    }

  private:
    [[noreturn]] void fail(std::string_view why) const {
        throw std::runtime_error(
            fmt::format("expression '{}': {} at column {}", text_, why, position_ + 1));
    }

    void skip_spaces() {
        while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    }

    bool accept(char wanted) {
        skip_spaces();
        if (position_ == text_.size() || text_[position_] != wanted) return false;
        ++position_;
        return true;
    }

    void require(char wanted) {
        if (!accept(wanted)) fail(fmt::format("expected '{}'", wanted));
    }

    std::int64_t expression() {
        if (++nesting_ > kMaxNesting) fail("nested too deeply");
        std::int64_t value = term();
        while (true) {
            if (accept('+')) {
                value = add(value, term());
            } else if (accept('-')) {
                value = subtract(value, term());
            } else {
                --nesting_;
                return value;
            }
        }
    }

    std::int64_t term() {
        std::int64_t value = factor();
        while (true) {
            if (accept('*')) {
                value = multiply(value, factor());
            } else if (accept('/')) {
                value = divide(value, factor()).first;
            } else if (accept('%')) {
                value = divide(value, factor()).second;
            } else {
                return value;
            }
        }
    }

    std::int64_t factor() {
        bool negative = false;
        while (accept('-')) negative = !negative;
        const std::int64_t value = primary();
        return negative ? subtract(0, value) : value;
    }

    std::int64_t primary() {
        if (accept('(')) {
            const std::int64_t value = expression();
            require(')');
            return value;
        }
        if (position_ == text_.size()) fail("expected a value");
        if (is_digit(text_[position_])) return number();
        if (is_name_start(text_[position_])) return name();
        fail("expected a value");
    }

    std::int64_t number() {
        std::int64_t value = 0;
        while (position_ < text_.size() && is_digit(text_[position_])) {
            value = add(multiply(value, 10), text_[position_++] - '0');
        }
        return value;
    }

    std::int64_t name() {
        const std::size_t start = position_;
        while (position_ < text_.size() &&
               (is_name_start(text_[position_]) || is_digit(text_[position_]))) {
            ++position_;
        }
        const std::string word(text_.substr(start, position_ - start));
        if (accept('(')) return function(word);
        const auto size = sizes_.find(word);
        if (size == sizes_.end()) fail(fmt::format("unknown name '{}'", word));
        return size->second;
    }

    std::int64_t function(std::string_view word) {
        if (word != "min" && word != "max" && word != "ceil_div") {
            fail(fmt::format("unknown function '{}', expected min, max or ceil_div", word));
        }
        const std::int64_t a = expression();
        require(',');
        const std::int64_t b = expression();
        require(')');
        if (word == "min") return std::min(a, b);
        if (word == "max") return std::max(a, b);
        const auto [quotient, remainder] = divide(a, b);
        const bool rounds_up = remainder != 0 && (remainder < 0) == (b < 0);
        return quotient + (rounds_up ? 1 : 0);
    }

    std::int64_t add(std::int64_t a, std::int64_t b) const {
        std::int64_t result = 0;
        if (__builtin_add_overflow(a, b, &result)) fail("overflow");
        return result;
    }
    std::int64_t subtract(std::int64_t a, std::int64_t b) const {
        std::int64_t result = 0;
        if (__builtin_sub_overflow(a, b, &result)) fail("overflow");
        return result;
    }
    std::int64_t multiply(std::int64_t a, std::int64_t b) const {
        std::int64_t result = 0;
        if (__builtin_mul_overflow(a, b, &result)) fail("overflow");
        return result;
    }
    std::pair<std::int64_t, std::int64_t> divide(std::int64_t a, std::int64_t b) const {
        if (b == 0) fail("division by zero");
        if (b == -1) return {subtract(0, a), 0};
        return {a / b, a % b};
    }

    std::string_view text_;
    const Sizes& sizes_;
    std::size_t position_ = 0;
    int nesting_ = 0;
};

template <typename Value, std::size_t N>
Value parse_word(std::string_view word,
                 const std::array<std::pair<std::string_view, Value>, N>& words,
                 std::string_view where) {
    std::string expected;
    for (const auto& [name, value] : words) {
        if (name == word) return value;
        expected += expected.empty() ? "" : ", ";
        expected += name;
    }
    throw std::runtime_error(fmt::format("{}: got '{}', expected {}", where, word, expected));
}

constexpr std::array<std::pair<std::string_view, ElementType>, 7> kTypes{
    {{"f32", ElementType::f32},
     {"f64", ElementType::f64},
     {"i8", ElementType::i8},
     {"u8", ElementType::u8},
     {"i32", ElementType::i32},
     {"u32", ElementType::u32},
     {"i64", ElementType::i64}}};

constexpr std::array<std::pair<std::string_view, KernelArgument::Role>, 4> kRoles{
    {{"input", KernelArgument::Role::input},
     {"output", KernelArgument::Role::output},
     {"inout", KernelArgument::Role::inout},
     {"size", KernelArgument::Role::size}}};

/// The string at `key`, or nothing when absent. Throws when it is there and not a string.
std::optional<std::string_view> find_string(const json::object& object, std::string_view key,
                                            std::string_view where) {
    const json::value* value = object.if_contains(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
        throw std::runtime_error(fmt::format("{}.{}: expected a string", where, key));
    }
    return std::string_view(value->get_string());
}

std::string_view get_string(const json::object& object, std::string_view key,
                            std::string_view where) {
    const auto found = find_string(object, key, where);
    if (!found) throw std::runtime_error(fmt::format("{}.{}: missing", where, key));
    return *found;
}

void refuse_unknown_keys(const json::object& object, std::initializer_list<std::string_view> known,
                         std::string_view where) {
    for (const auto& member : object) {
        const std::string_view key = member.key();
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            throw std::runtime_error(fmt::format("{}.{}: unknown key", where, key));
        }
    }
}

KernelArgument parse_argument(const json::value& value, const std::string& where) {
    if (!value.is_object()) throw std::runtime_error(where + ": expected an object");
    const json::object& object = value.get_object();
    refuse_unknown_keys(object, {"name", "role", "type", "count"}, where);
    KernelArgument argument;
    argument.name = get_string(object, "name", where);
    if (!is_identifier(argument.name)) {
        throw std::runtime_error(
            fmt::format("{}.name: '{}' is not an identifier", where, argument.name));
    }
    argument.role = parse_word(get_string(object, "role", where), kRoles, where + ".role");
    if (argument.role == KernelArgument::Role::size) {
        if (find_string(object, "type", where).value_or("i64") != "i64") {
            throw std::runtime_error(where + ".type: a size is always i64");
        }
        if (object.contains("count")) {
            throw std::runtime_error(where + ".count: a size is passed by value and has no count");
        }
        argument.type = ElementType::i64;
        return argument;
    }
    argument.type = parse_word(get_string(object, "type", where), kTypes, where + ".type");
    argument.count = get_string(object, "count", where);
    return argument;
}

void check_counts(const KernelSignature& signature) {
    Sizes sizes;
    std::set<std::string> names;
    for (const KernelArgument& argument : signature.arguments) {
        if (!names.insert(argument.name).second) {
            throw std::runtime_error(
                fmt::format("signature.arguments: '{}' is declared twice", argument.name));
        }
        // A value at which expressions like n / (m - 1) are defined, to test names and syntax.
        if (argument.role == KernelArgument::Role::size) sizes[argument.name] = 7;
    }
    for (const KernelArgument& argument : signature.arguments) {
        if (argument.role == KernelArgument::Role::size) continue;
        try {
            evaluate_expression(argument.count, sizes);
        } catch (const std::runtime_error& error) {
            throw std::runtime_error(
                fmt::format("signature.arguments '{}'.count: {}", argument.name, error.what()));
        }
    }
}

}  // namespace

std::size_t element_bytes(ElementType type) {
    switch (type) {
        case ElementType::i8:
        case ElementType::u8:
            return 1;
        case ElementType::f32:
        case ElementType::i32:
        case ElementType::u32:
            return 4;
        case ElementType::f64:
        case ElementType::i64:
            return 8;
    }
    throw std::logic_error("element_bytes: not an element type");
}

KernelSignature parse_signature(const json::value& value) {
    if (!value.is_object()) throw std::runtime_error("signature: expected an object");
    const json::object& object = value.get_object();
    refuse_unknown_keys(object, {"entry", "arguments"}, "signature");
    KernelSignature signature;
    signature.entry = get_string(object, "entry", "signature");
    if (!is_identifier(signature.entry)) {
        throw std::runtime_error(
            fmt::format("signature.entry: '{}' is not an identifier", signature.entry));
    }
    const json::value* arguments = object.if_contains("arguments");
    if (arguments == nullptr || !arguments->is_array() || arguments->get_array().empty()) {
        throw std::runtime_error("signature.arguments: expected a list of arguments");
    }
    for (const json::value& argument : arguments->get_array()) {
        signature.arguments.push_back(parse_argument(
            argument, fmt::format("signature.arguments[{}]", signature.arguments.size())));
    }
    check_counts(signature);
    return signature;
}

double evaluate_expression(std::string_view expression, const Sizes& sizes) {
    return static_cast<double>(Evaluator(expression, sizes).evaluate());
}

}  // namespace skein::tools
