#pragma once
// A sandbox that runs nothing: it answers with scripted results and keeps what it was asked.

#include <boost/asio/awaitable.hpp>
#include <deque>
#include <optional>

#include "sandbox/sandbox.h"

namespace skein::test {

class FakeSandbox : public sandbox::Sandbox {
  public:
    struct Request {
        sandbox::SandboxPolicy policy;
        sandbox::Command command;
        sandbox::ResourceLimits limits;
    };
    std::deque<sandbox::ProcessResult> answers;  ///< taken from the front, one a run
    std::optional<std::string> error;            ///< thrown instead, as sandbox::Error
    std::vector<Request> requests;

    boost::asio::awaitable<sandbox::ProcessResult> run(sandbox::SandboxPolicy policy,
                                                       sandbox::Command command,
                                                       sandbox::ResourceLimits limits) override {
        requests.push_back({std::move(policy), std::move(command), limits});
        if (error) throw sandbox::Error(*error);
        if (answers.empty()) throw sandbox::Error("the fake sandbox has no answer left");
        sandbox::ProcessResult answer = std::move(answers.front());
        answers.pop_front();
        co_return answer;
    }
    const sandbox::ProbeReport& probe() override { return report_; }

    static sandbox::ProcessResult exited(int code, const std::string& output) {
        sandbox::ProcessResult result;
        result.outcome = sandbox::Outcome::exited;
        result.level = sandbox::Level::full;
        result.exit_code = code;
        result.out.head = output;
        result.out.total_bytes = output.size();
        return result;
    }

  private:
    sandbox::ProbeReport report_{sandbox::Level::full, {}};
};

}  // namespace skein::test
