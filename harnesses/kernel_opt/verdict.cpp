#include "harnesses/kernel_opt/verdict.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <stdexcept>

namespace skein::harnesses {

namespace json = boost::json;

namespace {

constexpr std::array<std::string_view, 12> kNames{
    "ok",         "compile_error",  "forbidden", "crash",               "timeout", "wrong_values",
    "nonfinite",  "input_modified", "hack",      "invalid_measurement", "noisy",   "harness_error"};

VerdictStatus status_of(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] == name) return static_cast<VerdictStatus>(i);
    }
    throw std::runtime_error(fmt::format("'{}' is not a verdict", name));
}

/// Infinity is not JSON; an error that large says no more than this.
constexpr double kLargest = 1e300;
double finite(double value) {
    return value < kLargest ? value : kLargest;
}

double number(const json::object& object, std::string_view key) {
    return object.at(key).to_number<double>();
}
std::string text(const json::object& object, std::string_view key) {
    return json::value_to<std::string>(object.at(key));
}

json::object shape_to_json(const ShapeTiming& shape, bool with_samples) {
    json::object out{{"case", shape.case_name},
                     {"speedup", shape.speedup},
                     {"speedup_low", shape.speedup_low},
                     {"speedup_high", shape.speedup_high},
                     {"limit_ns", shape.limit_ns},
                     {"limit_bound", shape.limit_bound},
                     {"limit_fraction", shape.limit_fraction}};
    if (with_samples) {
        out["anchor_ns"] = json::value_from(shape.anchor_ns);
        out["candidate_ns"] = json::value_from(shape.candidate_ns);
    }
    return out;
}

ShapeTiming shape_from_json(const json::object& object) {
    ShapeTiming shape;
    shape.case_name = text(object, "case");
    shape.speedup = number(object, "speedup");
    shape.speedup_low = number(object, "speedup_low");
    shape.speedup_high = number(object, "speedup_high");
    shape.limit_ns = number(object, "limit_ns");
    shape.limit_bound = text(object, "limit_bound");
    shape.limit_fraction = number(object, "limit_fraction");
    if (object.contains("anchor_ns")) {
        shape.anchor_ns = json::value_to<std::vector<double>>(object.at("anchor_ns"));
        shape.candidate_ns = json::value_to<std::vector<double>>(object.at("candidate_ns"));
    }
    return shape;
}

}  // namespace

std::string_view to_string(VerdictStatus status) {
    return kNames.at(static_cast<std::size_t>(status));
}

json::object to_json(const Verdict& verdict, bool with_samples) {
    json::array shapes;
    for (const ShapeTiming& shape : verdict.shapes) {
        shapes.push_back(shape_to_json(shape, with_samples));
    }
    return {{"status", to_string(verdict.status)},
            {"hack", verdict.hack},
            {"message", verdict.message},
            {"stage", verdict.stage},
            {"speedup", verdict.speedup},
            {"speedup_low", verdict.speedup_low},
            {"speedup_high", verdict.speedup_high},
            {"limit_fraction", verdict.limit_fraction},
            {"worst_error", finite(verdict.worst_error)},
            {"allowed_error", finite(verdict.allowed_error)},
            {"shapes", std::move(shapes)},
            {"candidate_sha256", verdict.candidate_sha256},
            {"seconds_compile", verdict.seconds_compile},
            {"seconds_check", verdict.seconds_check},
            {"seconds_time", verdict.seconds_time}};
}

Verdict verdict_from_json(const json::object& object) {
    Verdict verdict;
    verdict.status = status_of(text(object, "status"));
    verdict.hack = text(object, "hack");
    verdict.message = text(object, "message");
    verdict.stage = text(object, "stage");
    verdict.speedup = number(object, "speedup");
    verdict.speedup_low = number(object, "speedup_low");
    verdict.speedup_high = number(object, "speedup_high");
    verdict.limit_fraction = number(object, "limit_fraction");
    verdict.worst_error = number(object, "worst_error");
    verdict.allowed_error = number(object, "allowed_error");
    for (const json::value& shape : object.at("shapes").as_array()) {
        verdict.shapes.push_back(shape_from_json(shape.as_object()));
    }
    verdict.candidate_sha256 = text(object, "candidate_sha256");
    verdict.seconds_compile = number(object, "seconds_compile");
    verdict.seconds_check = number(object, "seconds_check");
    verdict.seconds_time = number(object, "seconds_time");
    return verdict;
}

}  // namespace skein::harnesses
