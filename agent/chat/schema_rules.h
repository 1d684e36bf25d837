#pragma once
// What the keywords of an argument schema say, read once for every syntax that writes arguments.
// Internal to this folder. Requires everywhere: a schema that tools::check_schema accepts.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/sampling/grammar.h"

namespace skein::agent {

inline constexpr int kMaxNesting = 32;
inline constexpr int kFreeDepth = 4;
inline constexpr std::uint64_t kMaxCharacters = 4096;

/// Throws: model::Error with the place and the reason.
[[noreturn]] void refuse_schema(const std::string& where, const std::string& why);

struct SizeRange {
    int min = 0, max = 0;
};
/// Throws: model::Error when nothing has such a size.
SizeRange length_of(const boost::json::object& schema, const std::string& where);
SizeRange items_of(const boost::json::object& schema, const std::string& where);

/// What the schema is about: its type, or the type its other keywords speak of, or "".
std::string_view type_of(const boost::json::object& schema);
/// The value is one of a list.
bool has_listed_values(const boost::json::object& schema);
/// The listed values that meet every other rule of the schema too. Throws: model::Error for none.
std::vector<boost::json::value> listed_values(const boost::json::object& schema,
                                              const std::string& where);
/// Throws: model::Error when no number lies within the bounds.
model::Grammar::Node add_number(model::Grammar::Builder& builder,
                                const boost::json::object& schema, bool integer,
                                const std::string& where);
/// Any JSON object, compact.
model::Grammar::Node add_free_object(model::Grammar::Builder& builder);
/// True for an object of which the schema names no member and forbids none.
bool is_free_object(const boost::json::object& schema);
bool is_required(const boost::json::object& schema, std::string_view name);

}  // namespace skein::agent
