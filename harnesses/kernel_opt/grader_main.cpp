// skein-grader: judges candidates of one task for the harness at the other end of its stdin and
// stdout (grader_protocol.h). It starts builder, oracle, anchor and candidate sandboxes itself.

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "harnesses/kernel_opt/grader_core.h"
#include "harnesses/kernel_opt/grader_protocol.h"

namespace {

using namespace skein;
namespace json = boost::json;

struct Judge {
    std::unique_ptr<sandbox::Sandbox> sandbox;
    harnesses::KernelTask task;
    std::unique_ptr<harnesses::GraderCore> core;
};

/// The harness is gone when nobody holds the other end: nothing is worth finishing then. The
/// sandboxes end with this process.
void leave_with_the_harness(const std::filesystem::path& scratch) {
    std::thread([scratch] {
        pollfd watched{STDIN_FILENO, 0, 0};
        while (poll(&watched, 1, -1) < 0) {
        }
        std::error_code ignored;
        std::filesystem::remove_all(scratch, ignored);
        _exit(0);
    }).detach();
}

void open_task(Judge& judge, const json::object& request) {
    judge.task =
        harnesses::load_task(json::value_to<std::string>(request.at("task")));
    judge.sandbox = sandbox::make_linux_sandbox();
    harnesses::GraderOptions options = harnesses::options_from_json(request);
    leave_with_the_harness(options.scratch);
    judge.core = std::make_unique<harnesses::GraderCore>(judge.task, *judge.sandbox, options);
}

json::object answer(Judge& judge, const json::object& request) {
    if (const auto* open = request.if_contains("open")) {
        open_task(judge, open->as_object());
        return {};
    }
    if (!judge.core) throw std::runtime_error("no task is open");
    if (const auto* grade = request.if_contains("grade")) {
        const json::object& body = grade->as_object();
        const harnesses::Stage stage = harnesses::stage_from_string(
            json::value_to<std::string>(body.at("stage")));
        const auto verdict = judge.core->grade(harnesses::candidate_from_json(body), stage);
        return {{"verdict", harnesses::to_json(verdict, true)}};
    }
    if (const auto* prepare = request.if_contains("prepare")) {
        std::vector<harnesses::Candidate> candidates;
        for (const json::value& candidate : prepare->as_array()) {
            candidates.push_back(harnesses::candidate_from_json(candidate.as_object()));
        }
        judge.core->prepare(candidates);
        return {};
    }
    if (request.contains("self_trial")) {
        return {{"verdict", harnesses::to_json(judge.core->self_trial(), true)}};
    }
    if (request.contains("admission")) {
        return {{"failures", json::value_from(judge.core->admission_failures())}};
    }
    throw std::runtime_error("unknown request");
}

}  // namespace

int main() {
    // Best effort: on a busy machine samples are less disturbed. Children inherit it.
    constexpr int kNice = -10;
    setpriority(PRIO_PROCESS, 0, kNice);
    Judge judge;
    for (std::string line; std::getline(std::cin, line);) {
        json::object reply;
        try {
            reply = answer(judge, json::parse(line).as_object());
        } catch (const std::exception& error) {
            reply = {{"error", error.what()}};
        }
        std::cout << json::serialize(reply) << std::endl;
    }
    return 0;
}
