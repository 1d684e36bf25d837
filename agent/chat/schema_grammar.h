#pragma once
// JSON Schema of tool arguments to a byte-level grammar.

#include <boost/json/object.hpp>
#include "model/sampling/grammar.h"

namespace skein::agent {

/// Adds nodes that accept exactly the compact JSON texts valid against `schema` (the subset of
/// tools/schema.h; strings are capped at a documented length).
/// Throws: model::Error for a keyword outside the subset.
model::Grammar::Node add_schema(model::Grammar::Builder& builder, const boost::json::object& schema);

}  // namespace skein::agent
