#pragma once
// JSON Schema of tool arguments to a byte-level grammar.
//
// Every text of the grammar is compact JSON that is valid against the schema. The converse holds up
// to these caps, which keep a reply finite: strings of 4096 characters, arrays of 256 items unless
// maxItems says more (at most 65536), free values of depth 4, only declared properties of an object
// that declares any, and numbers as in JsonNumberLimits.

#include <boost/json/object.hpp>

#include "model/sampling/grammar.h"

namespace skein::agent {

/// Adds nodes that accept the compact JSON texts valid against `schema` (the subset of
/// tools/schema.h).
/// Throws: model::Error that names the place of a keyword outside the subset, of a rule that no
/// value meets, or of a nesting deeper than 32.
model::Grammar::Node add_schema(model::Grammar::Builder& builder,
                                const boost::json::object& schema);

}  // namespace skein::agent
