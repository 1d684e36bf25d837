#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <stdexcept>

#include "agent/agent_impl.h"

namespace skein::agent {

boost::asio::awaitable<RunResult> Agent::Impl::loop(std::function<void()> start) {
    if (ended) throw std::logic_error("agent '" + config.name + "': the run has already ended");
    StepResult last;
    last.ended = ExitStatus::internal_error;
    try {
        start();
        do {
            auto turn = step({});
            last = co_await std::move(turn);
        } while (!last.ended);
    } catch (const boost::system::system_error& error) {
        const bool aborted = error.code() == boost::asio::error::operation_aborted;
        last = {};
        last.ended = aborted ? ExitStatus::cancelled : ExitStatus::internal_error;
        last.error = error.what();
    } catch (const std::exception& error) {
        last = {};
        last.ended = ExitStatus::internal_error;
        last.error = error.what();
    }
    try {
        finish(*last.ended, last.final_message, last.error);
    } catch (const std::exception& error) {
        // The end could not be stored: the caller must see that, whatever else had happened.
        ended->exit_status = ExitStatus::internal_error;
        ended->error += (ended->error.empty() ? "" : "; ") + std::string(error.what());
    }
    co_return *ended;
}

void Agent::Impl::restore(ResumePoint point) {
    if (begun || ended) throw std::logic_error("agent: restore must come before anything is said");
    begun = true;
    started = std::chrono::steady_clock::now();
    trajectory = point.trajectory;
    const auto take = [this](const std::vector<std::pair<Origin, Tokens>>& runs) {
        for (const auto& [origin, tokens] : runs) append({{origin, tokens}});
    };
    for (const StepRecord& step : point.steps) {
        take(step.delta);
        append_reply(step.reply);
        take(step.closing);
        ++usage.turns;
        next_step = std::max(next_step, step.sequence + 1);
    }
    // The next step's delta covers the tail too: a step holds all that came since the one before.
    recorded = log.size();
    take(point.tail);
    for (const ToolCallRecord& call : point.calls) {
        if (was_run(call.result)) ++usage.tool_calls;
    }
    if (point.steps.empty() && point.tail.empty()) {
        open_log();
    } else if (point.tail.empty()) {
        answer_last_step(point.steps.back(), point.calls);
    }
}

/// Gives the last reply what it was waiting for when the process died: the stored results, and for
/// calls without one the news that nobody knows what they did.
void Agent::Impl::answer_last_step(const StepRecord& step,
                                   const std::vector<ToolCallRecord>& calls) {
    const ParsedReply reply = parse(step.reply.tokens);
    const FinishReason finish = step.reply.finish;
    if (finish == FinishReason::cancelled || finish == FinishReason::error) {
        return say("Your last reply was interrupted and nothing in it was run. Continue.");
    }
    const std::string complaint = complaint_about(reply, finish);
    std::vector<Request> requests = requests_of(reply, finish, step.sequence);
    if (requests.empty() && !complaint.empty()) return say(complaint);
    std::vector<Message> messages;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& request = requests[i];
        const auto known = std::ranges::find_if(calls, [&](const ToolCallRecord& record) {
            return record.step == step.uid && record.call.id == request.call.id;
        });
        if (known != calls.end()) {
            messages.push_back({Role::tool, known->shown, {}, request.call.id, request.call.name,
                                model.tokenizer().encode(known->shown)});
            continue;
        }
        tools::ToolResult lost;
        lost.status = request.invalid ? tools::ToolStatus::invalid_call
                                      : tools::ToolStatus::cancelled;
        lost.text = request.invalid
                        ? request.refusal
                        : "Interrupted: the process ended during this call. It was not repeated; "
                          "it may or may not have had effects. Check before you call it again.";
        lost.details["not_run"] = true;
        messages.push_back(
            answer(request.call, lost.text, messages, requests.size() - 1 - i));
        record_call(step.uid, static_cast<int>(i), request.call, lost, messages.back(),
                    step.ended_ms);
    }
    append(format->render_results(messages));
}

/// A stored run whose last reply was its answer has nothing left to do.
bool Agent::Impl::answered(const ResumePoint& point) const {
    if (point.steps.empty() || !point.tail.empty()) return false;
    const StepRecord& step = point.steps.back();
    const FinishReason finish = step.reply.finish;
    if (finish != FinishReason::stop && finish != FinishReason::grammar_complete) return false;
    const ParsedReply reply = parse(step.reply.tokens);
    return reply.calls.empty() && reply.malformed.empty() && !reply.unclosed_thinking;
}

boost::asio::awaitable<RunResult> Agent::resume(ResumePoint point) {
    if (impl_->answered(point)) {
        const std::string text = impl_->parse(point.steps.back().reply.tokens).text;
        impl_->restore(std::move(point));
        co_return impl_->finish(ExitStatus::finished, text, {});
    }
    auto loop = impl_->loop([this, &point] { impl_->restore(std::move(point)); });
    co_return co_await std::move(loop);
}

}  // namespace skein::agent
