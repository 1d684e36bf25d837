#include "tools/json_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <set>
#include <vector>

#include "tools/text.h"

namespace skein::tools {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 64;

// Builds a value from parser events and watches what Boost.JSON lets pass: repeated keys, of which
// the last would silently win, and numbers that overflow to infinity.
class StrictHandler {
  public:
    static constexpr std::size_t max_object_size = json::object::max_size();
    static constexpr std::size_t max_array_size = json::array::max_size();
    static constexpr std::size_t max_key_size = json::string::max_size();
    static constexpr std::size_t max_string_size = json::string::max_size();

    bool on_document_begin(json::error_code&) {
        stack_.reset();
        return true;
    }
    bool on_document_end(json::error_code&) { return true; }
    bool on_object_begin(json::error_code&) {
        keys_.emplace_back();
        return true;
    }
    bool on_object_end(std::size_t n, json::error_code&) {
        keys_.pop_back();
        stack_.push_object(n);
        return true;
    }
    bool on_array_begin(json::error_code&) { return true; }
    bool on_array_end(std::size_t n, json::error_code&) {
        stack_.push_array(n);
        return true;
    }
    bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
        key_.append(part.data(), part.size());
        stack_.push_chars(part);
        return true;
    }
    bool on_key(json::string_view part, std::size_t, json::error_code& error) {
        key_.append(part.data(), part.size());
        stack_.push_key(part);
        if (!keys_.back().insert(key_).second) {
            return refuse(fmt::format("the key {} appears twice", quote(key_)), error);
        }
        key_.clear();
        return true;
    }
    bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
        stack_.push_chars(part);
        return true;
    }
    bool on_string(json::string_view part, std::size_t, json::error_code&) {
        stack_.push_string(part);
        return true;
    }
    bool on_number_part(json::string_view, json::error_code&) { return true; }
    bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
        stack_.push_int64(value);
        return true;
    }
    bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
        stack_.push_uint64(value);
        return true;
    }
    bool on_double(double value, json::string_view, json::error_code& error) {
        if (!std::isfinite(value)) return refuse("the number is too large", error);
        stack_.push_double(value);
        return true;
    }
    bool on_bool(bool value, json::error_code&) {
        stack_.push_bool(value);
        return true;
    }
    bool on_null(json::error_code&) {
        stack_.push_null();
        return true;
    }
    bool on_comment_part(json::string_view, json::error_code&) { return true; }
    bool on_comment(json::string_view, json::error_code&) { return true; }

    const std::string& refusal() const { return refusal_; }
    json::value release() { return stack_.release(); }

  private:
    bool refuse(std::string why, json::error_code& error) {
        refusal_ = std::move(why);
        error = json::error::exception;
        return false;
    }

    json::value_stack stack_;
    std::vector<std::set<std::string>> keys_;  // of the objects still open
    std::string key_;
    std::string refusal_;
};

// The words for what usually goes wrong; the parser's own message is the fallback.
std::string explain(const json::error_code& error, std::string_view text, std::size_t position) {
    const char here = position < text.size() ? text[position] : '\0';
    const bool at_end = position >= text.size();
    if (error == json::error::too_deep) return fmt::format("nested deeper than {}", kMaxDepth);
    if (at_end || error == json::error::incomplete) return "the text ends inside the JSON value";
    const std::size_t before = text.substr(0, position).find_last_not_of(" \t\r\n");
    const char previous = before == text.npos ? '\0' : text[before];
    if ((here == '}' || here == ']') && previous == ',') return "trailing comma";
    if (here == '\'') return "single quotes; JSON strings take double quotes";
    if (here == '\\') return "a backslash outside of a string";
    if (here == '/' || here == '#') return "comments are not JSON";
    if (static_cast<unsigned char>(here) < 0x20) {
        return "a raw control character; write \\n, \\t or \\u00XX inside strings";
    }
    if (previous == '{' || previous == ',') return "a key must be a string in double quotes";
    return error.message();
}

std::string describe(std::string_view text, std::size_t position, const std::string& why) {
    position = std::min(position, text.size());
    const auto newlines =
        std::count(text.begin(), text.begin() + static_cast<long>(position), '\n');
    const std::size_t begin = position < 30 ? 0 : position - 30;
    const std::string before = quote(utf8_suffix(text.substr(0, position), position - begin), 120);
    const std::string after =
        position < text.size() ? quote(text.substr(position), 30) : "the end";
    return fmt::format("not valid JSON at byte {} (line {}): {}; after {} comes {}", position,
                       newlines + 1, why, before, after);
}

}  // namespace

ParsedArguments parse_arguments(std::string_view text) {
    ParsedArguments result;
    if (text.find_first_not_of(" \t\r\n") == text.npos) {
        result.error =
            "the arguments are empty: expected a JSON object, {} when there is nothing to say";
        return result;
    }
    json::parse_options options;
    options.max_depth = kMaxDepth;
    json::basic_parser<StrictHandler> parser(options);
    json::error_code error;
    std::size_t used = parser.write_some(false, text.data(), text.size(), error);
    if (!error) {
        const std::size_t rest = text.find_first_not_of(" \t\r\n", used);
        if (rest != text.npos) {
            used = rest;
            error = json::error::extra_data;
        }
    }
    if (error) {
        result.position = used;
        const std::string& refusal = parser.handler().refusal();
        const std::string why = !refusal.empty()                   ? refusal
                                : error == json::error::extra_data ? "text after the JSON value"
                                                                   : explain(error, text, used);
        result.error = describe(text, used, why);
        return result;
    }
    json::value value = parser.handler().release();
    if (!value.is_object()) {
        result.error = fmt::format("expected a JSON object, got {}", json::to_string(value.kind()));
        return result;
    }
    result.object = std::move(value.get_object());
    return result;
}

}  // namespace skein::tools
