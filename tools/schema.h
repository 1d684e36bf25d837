#pragma once
// The JSON Schema subset we accept for tool arguments: validation with positions. PUBLIC.
// type, properties, required, additionalProperties, enum, const, items, minItems, maxItems,
// minLength, maxLength, minimum, maximum, description, default. Others are refused at registration.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>

namespace skein::tools {

/// The first violation as "where: expected X, got Y", or nothing; `where` is a JSON pointer.
/// Nothing is coerced: "false" is no boolean, 12.0 no integer, null only null.
/// Requires: a schema that `check_schema` accepts.
std::optional<std::string> validate(const boost::json::value& value,
                                    const boost::json::object& schema);
/// The first keyword of the schema that we cannot enforce or that has a wrong value, or nothing.
std::optional<std::string> check_schema(const boost::json::object& schema);

}  // namespace skein::tools
