#include "tools/schema.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <vector>

#include "tools/text.h"

// One written rule for types: no coercion. A boolean is true or false, never "false" or 0; an
// integer has neither fraction nor exponent, so 12.0 and 1e1 are refused; null is only "null".

namespace skein::tools {
namespace {

namespace json = boost::json;
using Violation = std::optional<std::string>;

constexpr std::array kTypes{"object", "array", "string", "integer", "number", "boolean", "null"};
constexpr std::array kKeywords{"type",     "properties",  "required",  "additionalProperties",
                               "enum",     "const",       "items",     "minItems",
                               "maxItems", "minLength",   "maxLength", "minimum",
                               "maximum",  "description", "default"};

// Boost.JSON writes 0.5 as 5E-1; people and models do not.
std::string plain(const json::value& value) {
    if (!value.is_double()) return json::serialize(value);
    const std::string text = fmt::format("{}", value.get_double());
    return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string show(const json::value& value) {
    std::string text = plain(value);
    if (text.size() > 60) text = std::string(utf8_prefix(text, 57)) + "...";
    switch (value.kind()) {
        case json::kind::null:
            return "null";
        case json::kind::bool_:
            return "boolean " + text;
        case json::kind::int64:
        case json::kind::uint64:
            return "integer " + text;
        case json::kind::double_:
            return "number " + text;
        case json::kind::string:
            return "string " + text;
        case json::kind::array:
            return "array " + text;
        case json::kind::object:
            return "object " + text;
    }
    return text;
}

bool is_type(const json::value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_bool();
    return value.is_null();
}

std::string pointer(const std::string& where, std::string_view key) {
    std::string escaped;
    for (const char c : key) {
        if (c == '~')
            escaped += "~0";
        else if (c == '/')
            escaped += "~1";
        else
            escaped += c;
    }
    return where + '/' + escaped;
}

std::string at(const std::string& where) {
    return where.empty() ? "arguments" : where;
}

std::string mismatch(const std::string& where, const std::string& expected,
                     const json::value& got) {
    return fmt::format("{}: expected {}, got {}", at(where), expected, show(got));
}

std::size_t characters(std::string_view text) {
    std::size_t n = 0;
    for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    return n;
}

Violation check_size(const std::string& where, std::size_t size, const json::object& schema,
                     const char* min_key, const char* max_key, const char* unit) {
    if (const json::value* least = schema.if_contains(min_key)) {
        if (size < least->to_number<std::size_t>()) {
            return fmt::format("{}: expected at least {} {}, got {}", at(where),
                               least->to_number<std::size_t>(), unit, size);
        }
    }
    if (const json::value* most = schema.if_contains(max_key)) {
        if (size > most->to_number<std::size_t>()) {
            return fmt::format("{}: expected at most {} {}, got {}", at(where),
                               most->to_number<std::size_t>(), unit, size);
        }
    }
    return {};
}

Violation check_range(const json::value& value, const json::object& schema,
                      const std::string& where) {
    const double number = value.to_number<double>();
    if (const json::value* least = schema.if_contains("minimum")) {
        if (number < least->to_number<double>()) {
            return mismatch(where, "a number >= " + plain(*least), value);
        }
    }
    if (const json::value* most = schema.if_contains("maximum")) {
        if (number > most->to_number<double>()) {
            return mismatch(where, "a number <= " + plain(*most), value);
        }
    }
    return {};
}

Violation check(const json::value& value, const json::object& schema, const std::string& where);

std::vector<std::string> names_of(const json::object& properties) {
    std::vector<std::string> names;
    for (const auto& [key, unused] : properties) names.emplace_back(key);
    return names;
}

std::string list(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

Violation check_object(const json::object& object, const json::object& schema,
                       const std::string& where) {
    static const json::object kNone;
    const json::value* declared = schema.if_contains("properties");
    const json::object& properties = declared ? declared->get_object() : kNone;
    const json::value* additional = schema.if_contains("additionalProperties");
    if (additional && !additional->get_bool()) {
        for (const auto& [key, value] : object) {
            if (properties.contains(key)) continue;
            const std::vector<std::string> names = names_of(properties);
            const std::string near = nearest(key, names);
            return fmt::format("{}: expected one of the properties {}, got {}{}", at(where),
                               list(names), quote(key),
                               near.empty() ? "" : "; did you mean \"" + near + "\"?");
        }
    }
    if (const json::value* required = schema.if_contains("required")) {
        for (const json::value& name : required->get_array()) {
            if (object.contains(name.get_string())) continue;
            const std::string near = nearest(name.get_string(), names_of(object));
            const bool stranger = !near.empty() && !properties.contains(near);
            return fmt::format(
                "{}: expected the required property \"{}\", got {}{}", at(where),
                std::string_view(name.get_string()),
                object.empty() ? "an empty object" : "only " + list(names_of(object)),
                stranger ? "; did you mean it by \"" + near + "\"?" : "");
        }
    }
    for (const auto& [key, value] : object) {
        const json::value* rule = properties.if_contains(key);
        if (!rule) continue;
        if (Violation found = check(value, rule->get_object(), pointer(where, key))) return found;
    }
    return {};
}

Violation check_array(const json::array& array, const json::object& schema,
                      const std::string& where) {
    if (Violation found =
            check_size(where, array.size(), schema, "minItems", "maxItems", "items")) {
        return found;
    }
    const json::value* items = schema.if_contains("items");
    for (std::size_t i = 0; items && i < array.size(); ++i) {
        const std::string place = pointer(where, std::to_string(i));
        if (Violation found = check(array[i], items->get_object(), place)) return found;
    }
    return {};
}

Violation check_choice(const json::value& value, const json::object& schema,
                       const std::string& where) {
    if (const json::value* only = schema.if_contains("const"); only && value != *only) {
        return mismatch(where, json::serialize(*only), value);
    }
    const json::value* choices = schema.if_contains("enum");
    if (!choices) return {};
    std::vector<std::string> texts;
    for (const json::value& choice : choices->get_array()) {
        if (value == choice) return {};
        texts.push_back(choice.is_string() ? std::string(choice.get_string())
                                           : json::serialize(choice));
    }
    const std::string near = value.is_string() ? nearest(value.get_string(), texts) : "";
    return mismatch(where, "one of " + json::serialize(*choices), value) +
           (near.empty() ? "" : "; did you mean \"" + near + "\"?");
}

Violation check(const json::value& value, const json::object& schema, const std::string& where) {
    if (const json::value* type = schema.if_contains("type")) {
        const std::string_view name = type->get_string();
        if (!is_type(value, name)) {
            return mismatch(where, std::string(name), value) +
                   (name == "integer" && value.is_double() ? " (no fraction, no exponent)" : "");
        }
    }
    if (Violation found = check_choice(value, schema, where)) return found;
    if (value.is_string()) {
        return check_size(where, characters(value.get_string()), schema, "minLength", "maxLength",
                          "characters");
    }
    if (value.is_number()) return check_range(value, schema, where);
    if (value.is_array()) return check_array(value.get_array(), schema, where);
    if (value.is_object()) return check_object(value.get_object(), schema, where);
    return {};
}

Violation check_subschema(const json::object& schema, const std::string& where);

bool is_count(const json::value& value) {
    return value.is_uint64() || (value.is_int64() && value.get_int64() >= 0);
}

Violation wrong(const std::string& where, std::string_view keyword, const char* expected) {
    return fmt::format("{}: \"{}\" must be {}", where.empty() ? "schema" : where, keyword,
                       expected);
}

Violation check_properties(const json::object& schema, const std::string& where) {
    const json::value* properties = schema.if_contains("properties");
    if (properties) {
        if (!properties->is_object()) return wrong(where, "properties", "an object");
        for (const auto& [key, rule] : properties->get_object()) {
            const std::string place = pointer(where + "/properties", key);
            if (!rule.is_object()) return place + ": must be a schema object";
            if (Violation found = check_subschema(rule.get_object(), place)) return found;
        }
    }
    const json::value* required = schema.if_contains("required");
    if (!required) return {};
    if (!required->is_array()) return wrong(where, "required", "an array of property names");
    for (const json::value& name : required->get_array()) {
        if (!name.is_string()) return wrong(where, "required", "an array of property names");
        if (!properties || !properties->get_object().contains(name.get_string())) {
            return fmt::format("{}: \"{}\" is required but not among the properties",
                               where.empty() ? "schema" : where,
                               std::string_view(name.get_string()));
        }
    }
    return {};
}

Violation check_keyword(std::string_view keyword, const json::value& value,
                        const std::string& where) {
    const auto is_any_of = [&](auto... names) { return ((keyword == names) || ...); };
    if (is_any_of("minItems", "maxItems", "minLength", "maxLength")) {
        if (!is_count(value)) return wrong(where, keyword, "a count");
    } else if (is_any_of("minimum", "maximum")) {
        if (!value.is_number()) return wrong(where, keyword, "a number");
    } else if (keyword == "type") {
        if (!value.is_string()) return wrong(where, keyword, "one type name");
        for (const char* type : kTypes) {
            if (value.get_string() == type) return {};
        }
        return wrong(where, keyword, "a JSON Schema type");
    } else if (keyword == "enum") {
        if (!value.is_array() || value.get_array().empty())
            return wrong(where, keyword, "a filled array");
    } else if (keyword == "additionalProperties") {
        if (!value.is_bool()) return wrong(where, keyword, "true or false");
    } else if (keyword == "description") {
        if (!value.is_string()) return wrong(where, keyword, "text");
    } else if (keyword == "items") {
        if (!value.is_object()) return wrong(where, keyword, "a schema object");
        return check_subschema(value.get_object(), where + "/items");
    }
    return {};
}

Violation check_subschema(const json::object& schema, const std::string& where) {
    for (const auto& [keyword, value] : schema) {
        bool known = false;
        for (const char* name : kKeywords) known = known || keyword == name;
        if (!known) {
            return fmt::format("{}: the keyword \"{}\" is not enforced here",
                               where.empty() ? "schema" : where, std::string_view(keyword));
        }
        if (Violation found = check_keyword(keyword, value, where)) return found;
    }
    return check_properties(schema, where);
}

}  // namespace

std::optional<std::string> validate(const json::value& value, const json::object& schema) {
    return check(value, schema, "");
}

std::optional<std::string> check_schema(const json::object& schema) {
    return check_subschema(schema, "");
}

}  // namespace skein::tools
