#pragma once
// JSON Schema of tool arguments to a byte-level grammar, in two syntaxes: compact JSON, and
// elements with a control token in front of every tag.
//
//   arguments := member*                       in any order, each at most once
//   member    := TAG "<" name ">" value TAG "</" name ">"
//   value     := raw text (string) | member* (object) | (TAG "<item>" value TAG "</item>")* (array)
//              | JSON (every other scalar; a free value or object; a listed array or object)
//
// Every text of the grammar is valid against the schema. The converse holds up to these caps,
// which keep a reply finite: strings of 4096 characters, arrays of 256 items unless maxItems says
// more (at most 65536), free values of depth 4, only declared properties of an object that declares
// any, and numbers as in JsonNumberLimits.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>

#include "model/sampling/grammar.h"

namespace skein::agent {

/// Adds nodes that accept the compact JSON texts valid against `schema` (the subset of
/// tools/schema.h).
/// Throws: model::Error that names the place of a keyword outside the subset, of a rule that no
/// value meets, or of a nesting deeper than 32.
model::Grammar::Node add_schema(model::Grammar::Builder& builder,
                                const boost::json::object& schema);
/// The same for the members of an arguments object as elements. Throws also: for a name that no
/// element can have.
model::Grammar::Node add_argument_elements(model::Grammar::Builder& builder,
                                           const boost::json::object& schema, model::Token tag);
/// A listed value inside an element: a string as it is, anything else as compact JSON.
std::string element_text(const boost::json::value& value);

}  // namespace skein::agent
