#include "agent/chat/schema_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/error.h"
#include "tools/schema.h"

namespace skein::agent {
namespace {

namespace json = boost::json;
using model::Grammar;
using Node = Grammar::Node;

constexpr int kMaxNesting = 32;
constexpr int kFreeDepth = 4;
constexpr std::uint64_t kMaxCharacters = 4096;
constexpr std::uint64_t kDefaultItems = 256;
constexpr std::uint64_t kMaxItems = 65536;

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
    throw model::Error(fmt::format("schema: {}: {}", where.empty() ? "arguments" : where, why));
}

/// A size keyword; check_schema has made sure that it is a count.
std::uint64_t count_or(const json::object& schema, std::string_view keyword,
                       std::uint64_t otherwise) {
    const json::value* value = schema.if_contains(keyword);
    return value == nullptr ? otherwise : value->to_number<std::uint64_t>();
}

struct Range {
    int min = 0, max = 0;
};

Range range_of(const json::object& schema, const char* min_key, const char* max_key,
               std::uint64_t otherwise, std::uint64_t cap, const std::string& where) {
    const std::uint64_t min = count_or(schema, min_key, 0);
    const std::uint64_t max = std::min(cap, count_or(schema, max_key, std::max(otherwise, min)));
    if (min > max) {
        refuse(where, fmt::format("{} is {}; expected at most {}", min_key, min, max));
    }
    return {static_cast<int>(min), static_cast<int>(max)};
}

/// The tightest integer inside a bound of any number type, clamped to 64 bits.
std::int64_t integer_bound(const json::value& bound, bool is_minimum) {
    constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
    if (bound.is_int64()) return bound.get_int64();
    if (bound.is_uint64()) return kHigh;  // larger than any int64
    const double inside =
        is_minimum ? std::ceil(bound.get_double()) : std::floor(bound.get_double());
    if (inside >= 0x1p63) return kHigh;
    return inside < -0x1p63 ? kLow : static_cast<std::int64_t>(inside);
}

/// What a schema without `type` is about, from the keywords it has.
std::string_view type_of(const json::object& schema) {
    if (const json::value* type = schema.if_contains("type")) return type->get_string();
    const auto has = [&schema](auto... keywords) { return (schema.contains(keywords) || ...); };
    if (has("properties", "required", "additionalProperties")) return "object";
    if (has("items", "minItems", "maxItems")) return "array";
    if (has("minLength", "maxLength")) return "string";
    if (has("minimum", "maximum")) return "number";
    return "";
}

class SchemaWriter {
  public:
    explicit SchemaWriter(Grammar::Builder& builder) : builder_(builder) {}

    Node add(const json::object& schema, const std::string& where, int nesting) {
        if (nesting > kMaxNesting) refuse(where, fmt::format("nested deeper than {}", kMaxNesting));
        if (schema.contains("const") || schema.contains("enum")) return values(schema, where);
        const std::string_view type = type_of(schema);
        if (type == "object") return object(schema, where, nesting);
        if (type == "array") return array(schema, where, nesting);
        if (type == "string") {
            const Range range =
                range_of(schema, "minLength", "maxLength", kMaxCharacters, kMaxCharacters, where);
            return builder_.json_string({range.min, range.max});
        }
        if (type == "integer" || type == "number") return number(schema, type == "integer", where);
        if (type == "boolean") return builder_.choice({"true", "false"});
        if (type == "null") return builder_.literal("null");
        return builder_.json_value(kFreeDepth);
    }

  private:
    /// The listed values that meet every other rule of the schema too.
    Node values(const json::object& schema, const std::string& where) {
        std::vector<std::string> texts;
        const auto take = [&](const json::value& value) {
            if (!tools::validate(value, schema)) texts.push_back(json::serialize(value));
        };
        if (const json::value* only = schema.if_contains("const")) {
            take(*only);
        } else {
            for (const json::value& value : schema.at("enum").get_array()) take(value);
        }
        if (texts.empty()) refuse(where, "no listed value meets the other rules");
        return builder_.choice(std::move(texts));
    }

    Node number(const json::object& schema, bool integer, const std::string& where) {
        model::JsonNumberLimits limits;
        limits.integer = integer;
        const json::value* low = schema.if_contains("minimum");
        const json::value* high = schema.if_contains("maximum");
        if (integer) {
            if (low) limits.minimum = integer_bound(*low, true);
            if (high) limits.maximum = integer_bound(*high, false);
        } else {
            if (low) limits.real_minimum = low->to_number<double>();
            if (high) limits.real_maximum = high->to_number<double>();
        }
        try {
            return builder_.json_number(limits);
        } catch (const model::Error& error) {
            refuse(where, error.what());
        }
    }

    Node array(const json::object& schema, const std::string& where, int nesting) {
        const Range range =
            range_of(schema, "minItems", "maxItems", kDefaultItems, kMaxItems, where);
        const json::value* items = schema.if_contains("items");
        const Node item = items ? add(items->get_object(), where + "/items", nesting + 1)
                                : builder_.json_value(kFreeDepth);
        const Node comma = builder_.literal(",");
        const Node list = builder_.repeat(item, comma, range.min, range.max);
        return builder_.sequence({builder_.literal("["), list, builder_.literal("]")});
    }

    Node object(const json::object& schema, const std::string& where, int nesting) {
        const json::value* additional = schema.if_contains("additionalProperties");
        const json::value* properties = schema.if_contains("properties");
        if (!properties && !(additional && !additional->get_bool())) return free_object();
        std::vector<Grammar::Builder::Member> members;
        if (properties) {
            for (const auto& [name, rule] : properties->get_object()) {
                const std::string place = where + "/" + std::string(name);
                const Node value = add(rule.get_object(), place, nesting + 1);
                members.push_back({std::string(name), value, is_required(schema, name)});
            }
        }
        return builder_.json_object(std::move(members));
    }

    static bool is_required(const json::object& schema, std::string_view name) {
        const json::value* required = schema.if_contains("required");
        if (!required) return false;
        const json::array& names = required->get_array();
        return std::any_of(names.begin(), names.end(), [name](const json::value& entry) {
            return std::string_view(entry.get_string()) == name;
        });
    }

    Node free_object() {
        const Node name = builder_.json_string({});
        const Node value = builder_.json_value(kFreeDepth - 1);
        const Node member = builder_.sequence({name, builder_.literal(":"), value});
        const Node comma = builder_.literal(",");
        const Node members = builder_.repeat(member, comma, 0, 64);
        return builder_.sequence({builder_.literal("{"), members, builder_.literal("}")});
    }

    Grammar::Builder& builder_;
};

}  // namespace

model::Grammar::Node add_schema(model::Grammar::Builder& builder, const json::object& schema) {
    if (const auto violation = tools::check_schema(schema)) {
        throw model::Error("schema: " + *violation);
    }
    return SchemaWriter(builder).add(schema, "", 0);
}

}  // namespace skein::agent
