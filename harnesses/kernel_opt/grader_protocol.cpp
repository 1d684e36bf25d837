#include "harnesses/kernel_opt/grader_protocol.h"

#include <fmt/format.h>

#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

namespace skein::harnesses {

namespace json = boost::json;

json::object to_json(const Candidate& candidate) {
    return {{"source", candidate.source}, {"flags", json::value_from(candidate.flags)}};
}

Candidate candidate_from_json(const json::object& object) {
    return {json::value_to<std::string>(object.at("source")),
            json::value_to<std::vector<std::string>>(object.at("flags"))};
}

json::object open_request(const KernelTask& task, const GraderOptions& options) {
    return {{"task", task.directory.string()},
            {"secret", fmt::format("{:016x}", options.secret)},
            {"scratch", options.scratch.string()},
            {"pairs", options.pairs},
            {"final_pairs", options.final_pairs},
            {"shape_budget_ms", options.shape_budget.count()},
            {"call_timeout_ms", options.call_timeout.count()}};
}

GraderOptions options_from_json(const json::object& object) {
    const auto number = [&](const char* key) { return object.at(key).to_number<std::int64_t>(); };
    GraderOptions options;
    options.secret =
        std::stoull(json::value_to<std::string>(object.at("secret")), nullptr, 16);
    options.scratch = json::value_to<std::string>(object.at("scratch"));
    options.pairs = static_cast<int>(number("pairs"));
    options.final_pairs = static_cast<int>(number("final_pairs"));
    options.shape_budget = std::chrono::milliseconds(number("shape_budget_ms"));
    options.call_timeout = std::chrono::milliseconds(number("call_timeout_ms"));
    return options;
}

}  // namespace skein::harnesses
