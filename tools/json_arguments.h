#pragma once
// The text of a tool call to a JSON object, strictly. PUBLIC.
//
// Accepted: one JSON object (RFC 8259) in UTF-8, nested at most 64 deep, nothing after it. Refused:
// everything else, also what lenient readers let through: comments, trailing commas, repeated keys,
// numbers beyond the range of a double, lone surrogates. Nothing is repaired: a guess that is wrong
// would run a command nobody asked for.

#include <boost/json/object.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace skein::tools {

struct ParsedArguments {
    std::optional<boost::json::object> object;  ///< empty when `error` says why
    std::string error;                          ///< one line, with position and what stands there
    std::size_t position = 0;                   ///< byte at which the text stopped making sense
};

ParsedArguments parse_arguments(std::string_view text);

}  // namespace skein::tools
