#pragma once
// What harness and `skein-grader` say to each other: one JSON object a line, strictly in turns.
//
//   {"open": {task, secret, scratch, pairs, final_pairs, shape_budget_ms, call_timeout_ms}} -> {}
//   {"grade": {"source", "flags", "stage"}}  -> {"verdict": {...}}
//   {"prepare": [{"source", "flags"}]}       -> {}
//   {"self_trial": null}                     -> {"verdict": {...}}
//   {"admission": null}                      -> {"failures": ["..."]}
// An answer {"error": "..."} means that the infrastructure failed; end of file ends the program.

#include <boost/json/object.hpp>

#include "harnesses/kernel_opt/grader.h"

namespace skein::harnesses {

boost::json::object to_json(const Candidate& candidate);
Candidate candidate_from_json(const boost::json::object& json);
/// The secret travels as hexadecimal text: JSON numbers would round it.
boost::json::object open_request(const KernelTask& task, const GraderOptions& options);
GraderOptions options_from_json(const boost::json::object& json);

}  // namespace skein::harnesses
