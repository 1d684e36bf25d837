#include "agent/chat/schema_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "model/error.h"
#include "tools/schema.h"

namespace skein::agent {

namespace json = boost::json;

namespace {

constexpr std::uint64_t kDefaultItems = 256;
constexpr std::uint64_t kMaxItems = 65536;

/// A size keyword; check_schema has made sure that it is a count.
std::uint64_t count_or(const json::object& schema, std::string_view keyword,
                       std::uint64_t otherwise) {
    const json::value* value = schema.if_contains(keyword);
    return value == nullptr ? otherwise : value->to_number<std::uint64_t>();
}

SizeRange range_of(const json::object& schema, const char* min_key, const char* max_key,
                   std::uint64_t otherwise, std::uint64_t cap, const std::string& where) {
    const std::uint64_t min = count_or(schema, min_key, 0);
    const std::uint64_t max = std::min(cap, count_or(schema, max_key, std::max(otherwise, min)));
    if (min > max) {
        refuse_schema(where, fmt::format("{} is {}; expected at most {}", min_key, min, max));
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

}  // namespace

void refuse_schema(const std::string& where, const std::string& why) {
    throw model::Error(fmt::format("schema: {}: {}", where.empty() ? "arguments" : where, why));
}

SizeRange length_of(const json::object& schema, const std::string& where) {
    return range_of(schema, "minLength", "maxLength", kMaxCharacters, kMaxCharacters, where);
}

SizeRange items_of(const json::object& schema, const std::string& where) {
    return range_of(schema, "minItems", "maxItems", kDefaultItems, kMaxItems, where);
}

std::string_view type_of(const json::object& schema) {
    if (const json::value* type = schema.if_contains("type")) return type->get_string();
    const auto has = [&schema](auto... keywords) { return (schema.contains(keywords) || ...); };
    if (has("properties", "required", "additionalProperties")) return "object";
    if (has("items", "minItems", "maxItems")) return "array";
    if (has("minLength", "maxLength")) return "string";
    if (has("minimum", "maximum")) return "number";
    return "";
}

bool has_listed_values(const json::object& schema) {
    return schema.contains("const") || schema.contains("enum");
}

std::vector<json::value> listed_values(const json::object& schema, const std::string& where) {
    std::vector<json::value> values;
    const auto take = [&](const json::value& value) {
        if (!tools::validate(value, schema)) values.push_back(value);
    };
    if (const json::value* only = schema.if_contains("const")) {
        take(*only);
    } else {
        for (const json::value& value : schema.at("enum").get_array()) take(value);
    }
    if (values.empty()) refuse_schema(where, "no listed value meets the other rules");
    return values;
}

model::Grammar::Node add_number(model::Grammar::Builder& builder, const json::object& schema,
                                bool integer, const std::string& where) {
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
        return builder.json_number(limits);
    } catch (const model::Error& error) {
        refuse_schema(where, error.what());
    }
}

model::Grammar::Node add_free_object(model::Grammar::Builder& builder) {
    const auto name = builder.json_string({});
    const auto value = builder.json_value(kFreeDepth - 1);
    const auto member = builder.sequence({name, builder.literal(":"), value});
    const auto members = builder.repeat(member, builder.literal(","), 0, 64);
    return builder.sequence({builder.literal("{"), members, builder.literal("}")});
}

bool is_free_object(const json::object& schema) {
    const json::value* additional = schema.if_contains("additionalProperties");
    return !schema.contains("properties") && !(additional && !additional->get_bool());
}

bool is_required(const json::object& schema, std::string_view name) {
    const json::value* required = schema.if_contains("required");
    if (!required) return false;
    const json::array& names = required->get_array();
    return std::any_of(names.begin(), names.end(), [name](const json::value& entry) {
        return std::string_view(entry.get_string()) == name;
    });
}

}  // namespace skein::agent
