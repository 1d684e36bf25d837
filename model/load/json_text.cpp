#include "model/load/json_text.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "model/error.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 32;

/// Event handler of Boost.JSON's parser that only watches keys. The parser's own value builder
/// keeps the last of two equal keys without saying so.
struct KeyWatcher {
    static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

    using Code = json::error_code;
    std::vector<std::unordered_set<std::string>> open_objects;
    std::string partial_key;
    std::string repeated;

    bool on_object_begin(Code&) {
        open_objects.emplace_back();
        return true;
    }
    bool on_object_end(std::size_t, Code&) {
        open_objects.pop_back();
        return true;
    }
    bool on_key_part(json::string_view part, std::size_t, Code&) {
        partial_key.append(part.data(), part.size());
        return true;
    }
    bool on_key(json::string_view part, std::size_t, Code& code) {
        partial_key.append(part.data(), part.size());
        if (!open_objects.back().insert(partial_key).second) {
            repeated = partial_key;
            code = json::error::not_object;  // any code stops the parser; `repeated` tells why
            return false;
        }
        partial_key.clear();
        return true;
    }
    bool on_document_begin(Code&) { return true; }
    bool on_document_end(Code&) { return true; }
    bool on_array_begin(Code&) { return true; }
    bool on_array_end(std::size_t, Code&) { return true; }
    bool on_string_part(json::string_view, std::size_t, Code&) { return true; }
    bool on_string(json::string_view, std::size_t, Code&) { return true; }
    bool on_number_part(json::string_view, Code&) { return true; }
    bool on_int64(std::int64_t, json::string_view, Code&) { return true; }
    bool on_uint64(std::uint64_t, json::string_view, Code&) { return true; }
    bool on_double(double, json::string_view, Code&) { return true; }
    bool on_bool(bool, Code&) { return true; }
    bool on_null(Code&) { return true; }
    bool on_comment_part(json::string_view, Code&) { return true; }
    bool on_comment(json::string_view, Code&) { return true; }
};

json::parse_options options() {
    json::parse_options chosen;
    chosen.max_depth = kMaxDepth;
    return chosen;
}

}  // namespace

json::value parse_json(std::string_view text, std::string_view where) {
    json::basic_parser<KeyWatcher> watcher(options());
    json::error_code code;
    const std::size_t read = watcher.write_some(false, text.data(), text.size(), code);
    if (!watcher.handler().repeated.empty()) {
        throw Error(fmt::format("{}: key '{}' occurs twice in one object, before byte {}", where,
                                printable(watcher.handler().repeated), read));
    }
    if (code) {
        throw Error(
            fmt::format("{}: not valid JSON near byte {}: {}", where, read, code.message()));
    }
    const std::size_t rest = text.find_first_not_of(" \t\r\n", read);
    if (rest != std::string_view::npos) {
        throw Error(fmt::format("{}: not valid JSON: more text follows at byte {}", where, rest));
    }
    json::value value = json::parse(text.substr(0, read), code, {}, options());
    if (code) throw Error(fmt::format("{}: not valid JSON: {}", where, code.message()));
    return value;
}

JsonObject::JsonObject(const json::value& value, std::string_view where)
    : object_(value.if_object()), where_(where) {
    if (object_ == nullptr) throw Error(fmt::format("{}: expected a JSON object", where));
}

const json::value* JsonObject::find(std::string_view key) const {
    const json::value* value = object_->if_contains({key.data(), key.size()});
    return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::uint64_t> JsonObject::unsigned_value(std::string_view key) const {
    const json::value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* u = value->if_uint64()) return *u;
    const auto* i = value->if_int64();
    if (i == nullptr || *i < 0) wrong_type(key, "a non-negative integer");
    return static_cast<std::uint64_t>(*i);
}

std::optional<double> JsonObject::number(std::string_view key) const {
    const json::value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) wrong_type(key, "a number");
    return value->to_number<double>();
}

std::optional<bool> JsonObject::boolean(std::string_view key) const {
    const json::value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const bool* b = value->if_bool();
    if (b == nullptr) wrong_type(key, "true or false");
    return *b;
}

std::optional<std::string_view> JsonObject::string(std::string_view key) const {
    const json::value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const json::string* s = value->if_string();
    if (s == nullptr) wrong_type(key, "a string");
    return std::string_view(s->data(), s->size());
}

void JsonObject::wrong_type(std::string_view key, const char* wanted) const {
    throw Error(fmt::format("{}: '{}' must be {}, it is {}", where_, printable(key), wanted,
                            printable(json::serialize(*find(key)))));
}

}  // namespace skein::model
