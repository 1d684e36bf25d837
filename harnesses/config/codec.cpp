#include "harnesses/config/codec.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <charconv>
#include <cmath>

#include "tools/text.h"

namespace skein::harnesses {
namespace {

constexpr std::size_t kMaxErrorsShown = 20;

// The text of a scalar; everything else, also null written as a word, is an error.
std::optional<std::string> scalar(ConfigReader& reader, const YamlNode& node,
                                  std::string_view expected) {
    if (node.kind == YamlNode::Kind::scalar) return node.text;
    const bool null = node.kind == YamlNode::Kind::null;
    reader.error(
        node,
        fmt::format("expected {}, got {}{}", expected, describe(node.kind),
                    null ? "; write null and ~ in quotes when they are meant as text, and \"\" "
                           "for empty text"
                         : ""));
    return std::nullopt;
}

// A plain scalar for a number or a flag; a quoted one is text and stays text.
std::optional<std::string> plain(ConfigReader& reader, const YamlNode& node,
                                 std::string_view expected) {
    const auto value = scalar(reader, node, expected);
    if (value && node.quoted) {
        reader.error(node, fmt::format("expected {}, got the text {}; leave out the quotes",
                                       expected, tools::quote(*value)));
        return std::nullopt;
    }
    return value;
}

// Digits with one optional fraction and no exponent, from 0.
std::optional<double> decimal(std::string_view text) {
    if (text.empty() || text.find_first_not_of("0123456789.") != text.npos) return std::nullopt;
    double value = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// The fewest digits that read back as the same value, without an exponent.
std::string shortest(double value) {
    char digits[400];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed).ptr;
    return {digits, end};
}

std::optional<double> unit_ms(std::string_view unit) {
    if (unit == "ms") return 1;
    if (unit == "s" || unit.empty()) return 1000;
    if (unit == "m" || unit == "min") return 60000;
    if (unit == "h") return 3600000;
    if (unit == "d") return 86400000;
    return std::nullopt;
}

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    double total = 0;
    bool first = true;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(kLetters), text.size());
        const std::size_t next = std::min(text.find_first_not_of(kLetters, end), text.size());
        const auto value = decimal(text.substr(0, end));
        const std::string_view unit = text.substr(end, next - end);
        const auto factor = unit_ms(unit);
        // A number without a unit is seconds, but only on its own: "1h30" could mean two things.
        if (!value || !factor || (unit.empty() && !first)) return std::nullopt;
        total += *value * *factor;
        text.remove_prefix(next);
        first = false;
    }
    constexpr double kTenYears = 10.0 * 366 * 86400000;
    if (first || total > kTenYears) return std::nullopt;
    return std::chrono::milliseconds(std::llround(total));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    const std::size_t end = std::min(text.find_first_of(kLetters), text.size());
    const auto value = decimal(text.substr(0, end));
    std::string_view unit = text.substr(end);
    for (const std::string_view tail : {"iB", "B", "i"}) {
        if (unit.size() >= tail.size() && unit.substr(unit.size() - tail.size()) == tail) {
            unit.remove_suffix(tail.size());
            break;
        }
    }
    const std::size_t power = unit.empty() ? 0 : std::string_view("KMGT").find(unit) + 1;
    if (!value || (!unit.empty() && (unit.size() != 1 || power == 0))) return std::nullopt;
    const double bytes = *value * std::pow(1024.0, static_cast<double>(power));
    if (bytes > 9e18 || bytes != std::floor(bytes)) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
}

std::string show_duration(std::chrono::milliseconds time) {
    const auto ms = time.count();
    return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

std::optional<std::string> tidy_text(ConfigReader& reader, const YamlNode& node,
                                     std::string_view expected) {
    const auto value = scalar(reader, node, expected);
    if (!value) return std::nullopt;
    constexpr std::string_view kSpace = " \t\r\n";
    if (value->empty()) {
        reader.error(node, fmt::format("expected {}, got empty text", expected));
        return std::nullopt;
    }
    if (kSpace.find(value->front()) != kSpace.npos || kSpace.find(value->back()) != kSpace.npos ||
        value->find('\n') != value->npos) {
        reader.error(
            node,
            fmt::format("expected {} on one line without white space at its ends, got {}; block "
                        "texts (| and >) end with a line end unless written |- or >-",
                        expected, tools::quote(*value)));
        return std::nullopt;
    }
    return value;
}

std::filesystem::path resolve(const ConfigReader& reader, const std::string& text) {
    const std::filesystem::path path(text);
    return path.is_absolute() || reader.base().empty() ? path
                                                       : (reader.base() / path).lexically_normal();
}

}  // namespace

void ConfigReader::error(const YamlNode& at, const std::string& message,
                         const std::string& suggestion) {
    const std::string hint =
        suggestion.empty() ? "" : fmt::format("; did you mean '{}'?", suggestion);
    found_.push_back({fmt::format("{}:{}:{}: {}{}", name_, at.line, at.column, message, hint),
                      suggestion, at.line, at.column});
}

void ConfigReader::finish() const {
    if (found_.empty()) return;
    std::string text;
    for (std::size_t i = 0; i < std::min(found_.size(), kMaxErrorsShown); ++i) {
        text += (i ? "\n" : "") + found_[i].text;
    }
    if (found_.size() > kMaxErrorsShown) {
        text += fmt::format("\n... and {} more", found_.size() - kMaxErrorsShown);
    }
    const Found& first = found_.front();
    throw ConfigError(text, name_, first.line, first.column, first.suggestion);
}

Codec<std::string> text() {
    return {[](ConfigReader& reader, const YamlNode& node) { return scalar(reader, node, "text"); },
            [](const std::string& value) { return YamlNode::string(value); },
            {{"type", "string"}}};
}

Codec<std::string> identifier() {
    return {[](ConfigReader& reader, const YamlNode& node) {
                return tidy_text(reader, node, "a name");
            },
            [](const std::string& value) { return YamlNode::string(value); },
            {{"type", "string"}, {"minLength", 1}}};
}

Codec<std::string> choice(std::vector<std::string> names) {
    boost::json::array values(names.begin(), names.end());
    return {[names](ConfigReader& reader, const YamlNode& node) -> std::optional<std::string> {
                const std::string expected = fmt::format("one of {}", fmt::join(names, ", "));
                const auto value = scalar(reader, node, expected);
                if (!value) return std::nullopt;
                if (std::find(names.begin(), names.end(), *value) != names.end()) return value;
                reader.error(node,
                             fmt::format("expected {}, got {}", expected, tools::quote(*value)),
                             tools::nearest(*value, names));
                return std::nullopt;
            },
            [](const std::string& value) { return YamlNode::string(value); },
            {{"type", "string"}, {"enum", std::move(values)}}};
}

std::optional<std::int64_t> read_integer(ConfigReader& reader, const YamlNode& node,
                                         std::int64_t least, std::int64_t most) {
    const auto text = plain(reader, node, "an integer");
    if (!text) return std::nullopt;
    std::int64_t value = 0;
    const char* const end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    // A leading zero means octal to some and nothing to others.
    const std::size_t digits = text->find_first_not_of('-');
    const bool zero = digits != text->npos && (*text)[digits] == '0' && text->size() > digits + 1;
    if (stop != end || zero || (error != std::errc() && error != std::errc::result_out_of_range)) {
        reader.error(node, fmt::format("expected an integer in decimal digits, got {}",
                                       tools::quote(*text)));
        return std::nullopt;
    }
    if (error != std::errc() || value < least || value > most) {
        reader.error(node,
                     fmt::format("expected an integer from {} to {}, got {}", least, most, *text));
        return std::nullopt;
    }
    return value;
}

Codec<double> number(double least, double most) {
    return {[=](ConfigReader& reader, const YamlNode& node) -> std::optional<double> {
                const auto text = plain(reader, node, "a number");
                if (!text) return std::nullopt;
                const auto value = decimal(*text);
                if (value && *value >= least && *value <= most) return value;
                reader.error(node, fmt::format("expected a number from {:g} to {:g}, got {}", least,
                                               most, tools::quote(*text)));
                return std::nullopt;
            },
            [](const double& value) { return YamlNode::plain(shortest(value)); },
            {{"type", "number"}, {"minimum", least}, {"maximum", most}}};
}

Codec<bool> flag() {
    return {[](ConfigReader& reader, const YamlNode& node) -> std::optional<bool> {
                const auto text = plain(reader, node, "true or false");
                if (!text) return std::nullopt;
                if (*text == "true" || *text == "false") return *text == "true";
                reader.error(node,
                             fmt::format("expected true or false, got {}", tools::quote(*text)));
                return std::nullopt;
            },
            [](const bool& value) { return YamlNode::plain(value ? "true" : "false"); },
            {{"type", "boolean"}}};
}

Codec<std::chrono::milliseconds> duration() {
    return {
        [](ConfigReader& reader, const YamlNode& node) -> std::optional<std::chrono::milliseconds> {
            constexpr std::string_view kExpected =
                "a duration such as 120s, 30m, 8h, 1h30m or plain seconds";
            const auto text = scalar(reader, node, kExpected);
            if (!text) return std::nullopt;
            const auto value = parse_duration(*text);
            if (!value) {
                reader.error(node,
                             fmt::format("expected {}, got {}", kExpected, tools::quote(*text)));
            }
            return value;
        },
        [](const std::chrono::milliseconds& value) {
            return YamlNode::plain(show_duration(value));
        },
        {{"type", {"string", "number"}},
         {"pattern", "^([0-9]+(\\.[0-9]+)?(ms|s|m|min|h|d))+$|^[0-9]+(\\.[0-9]+)?$"},
         {"minimum", 0}}};
}

Codec<std::uint64_t> byte_size() {
    return {[](ConfigReader& reader, const YamlNode& node) -> std::optional<std::uint64_t> {
                constexpr std::string_view kExpected = "a size such as 64M, 4G or plain bytes";
                const auto text = scalar(reader, node, kExpected);
                if (!text) return std::nullopt;
                const auto value = parse_size(*text);
                if (!value) {
                    reader.error(
                        node, fmt::format("expected {}, got {}", kExpected, tools::quote(*text)));
                }
                return value;
            },
            [](const std::uint64_t& value) {
                for (const auto& [shift, unit] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}}) {
                    if (value > 0 && value % (1ULL << shift) == 0) {
                        return YamlNode::plain(fmt::format("{}{}", value >> shift, unit));
                    }
                }
                return YamlNode::plain(std::to_string(value));
            },
            {{"type", {"string", "integer"}},
             {"pattern", "^[0-9]+(\\.[0-9]+)?([KMGT]i?)?B?$"},
             {"minimum", 0}}};
}

Codec<std::filesystem::path> path() {
    return {[](ConfigReader& reader, const YamlNode& node) -> std::optional<std::filesystem::path> {
                const auto text = tidy_text(reader, node, "a path");
                return text ? std::optional(resolve(reader, *text)) : std::nullopt;
            },
            [](const std::filesystem::path& value) {
                return value.empty() ? YamlNode() : YamlNode::string(value.string());
            },
            {{"type", "string"}, {"minLength", 1}}};
}

Codec<std::string> path_or(std::vector<std::string> kept) {
    return {[kept](ConfigReader& reader, const YamlNode& node) -> std::optional<std::string> {
                const auto text = tidy_text(reader, node, "a path");
                if (!text || std::find(kept.begin(), kept.end(), *text) != kept.end()) return text;
                return resolve(reader, *text).string();
            },
            [](const std::string& value) { return YamlNode::string(value); },
            {{"type", "string"}, {"minLength", 1}}};
}

Codec<std::vector<std::string>> names_or_all() {
    Codec<std::vector<std::string>> names = list_of(identifier());
    return {[names](ConfigReader& reader,
                    const YamlNode& node) -> std::optional<std::vector<std::string>> {
                if (node.kind == YamlNode::Kind::scalar && node.text == "all")
                    return std::vector<std::string>{};
                if (node.kind == YamlNode::Kind::sequence && node.items.empty()) {
                    reader.error(node, "an empty list; write all to take every one");
                    return std::nullopt;
                }
                return names.read(reader, node);
            },
            [names](const std::vector<std::string>& values) {
                return values.empty() ? YamlNode::string("all") : names.write(values);
            },
            {{"oneOf", {{{"const", "all"}}, names.schema}}}};
}

}  // namespace skein::harnesses
