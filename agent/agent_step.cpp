#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "agent/agent_impl.h"
#include "agent/context/tool_output.h"
#include "agent/deadline.h"
#include "agent/store/codec.h"
#include "agent/text_stream.h"
#include "model/error.h"

namespace skein::agent {

namespace {

std::int64_t unix_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// The two kinds of work a deadline may cut short. Neither throws: what went wrong is in `out`.
boost::asio::awaitable<void> complete_into(LanguageModel& model, CompletionRequest request,
                                           Completion& out) {
    try {
        auto work = model.complete(std::move(request));
        out = co_await std::move(work);
    } catch (const std::exception& error) {
        out.finish = FinishReason::error;
        out.error = error.what();
    }
}

boost::asio::awaitable<void> call_into(tools::Registry& tools, tools::ToolCall call,
                                       tools::ToolResult& out) {
    try {
        auto work = tools.call(std::move(call));
        out = co_await std::move(work);
    } catch (const boost::system::system_error& error) {
        const bool aborted = error.code() == boost::asio::error::operation_aborted;
        out.status = aborted ? tools::ToolStatus::cancelled : tools::ToolStatus::harness_error;
        out.text = error.what();
    } catch (const std::exception& error) {
        out.status = tools::ToolStatus::harness_error;
        out.text = error.what();
    }
}

std::string describe_grammar(const std::vector<const tools::ToolSpec*>& specs) {
    std::vector<std::string_view> names;
    for (const tools::ToolSpec* spec : specs) names.push_back(spec->name);
    return fmt::format("one call of {}", fmt::join(names, " | "));
}

/// A model that breaks its own contract must not reach the store as if it were data.
void check_completion(const Completion& reply) {
    if (reply.logprobs.size() != reply.tokens.size() ||
        reply.origins.size() != reply.tokens.size()) {
        throw model::Error(fmt::format(
            "the model returned {} tokens with {} logprobs and {} origins", reply.tokens.size(),
            reply.logprobs.size(), reply.origins.size()));
    }
}

}  // namespace

bool was_run(const tools::ToolResult& result) { return !result.details.contains("not_run"); }

boost::asio::awaitable<Agent::StepResult> Agent::Impl::step(TurnOptions options) {
    begin();
    StepResult result;
    result.ended = exhausted(config.limits, spent(static_cast<std::int64_t>(opening_tokens)));
    const bool calls_spent =
        config.limits.tool_calls > 0 && usage.tool_calls >= config.limits.tool_calls;
    if (!result.ended && !options.force_call.empty() && calls_spent) {
        result.ended = ExitStatus::tool_call_limit;
    }
    if (result.ended) co_return result;

    emit(TurnStarted{usage.turns + 1});
    auto question = query(std::move(options));
    const Query query = co_await std::move(question);
    const Completion& reply = query.record.reply;
    result.step = query.record.uid;
    result.finish = reply.finish;
    result.reply = parse(reply.tokens);
    if (reply.finish == FinishReason::error) {
        result.ended = ExitStatus::engine_error;
        result.error = reply.error;
    } else if (reply.finish == FinishReason::cancelled) {
        result.ended = query.late ? ExitStatus::time_limit : ExitStatus::cancelled;
    } else {
        auto answer = answer_reply(query.record, result);
        co_await std::move(answer);
    }
    emit(TurnFinished{usage.turns, usage});
    co_return result;
}

boost::asio::awaitable<void> Agent::Impl::answer_reply(const StepRecord& record,
                                                       StepResult& result) {
    std::vector<Request> requests =
        requests_of(result.reply, record.reply.finish, record.sequence);
    for (const ParsedReply::Malformed& broken : result.reply.malformed) {
        note("malformed_call", {{"step", record.uid.hex()},
                                {"error", broken.error},
                                {"raw", model::to_valid_utf8(broken.raw)}});
    }
    const std::string complaint = complaint_about(result.reply, record.reply.finish);
    if (!requests.empty()) {
        const bool nothing_to_run = std::ranges::all_of(
            requests, [](const Request& request) { return !request.refusal.empty(); });
        if (nothing_to_run) stuck.observe_nothing_run();
        auto work = execute(std::move(requests), result);
        co_await std::move(work);
    } else if (!complaint.empty()) {
        stuck.observe_nothing_run();
        note("reply_refused", {{"step", record.uid.hex()},
                               {"finish", to_string(record.reply.finish)},
                               {"unclosed_thinking", result.reply.unclosed_thinking}});
        say(complaint);
    } else {
        result.ended = ExitStatus::finished;
        result.final_message = result.reply.text;
    }
    if (!result.ended && stuck.stuck()) result.ended = ExitStatus::stuck;
}

boost::asio::awaitable<Agent::Impl::Query> Agent::Impl::query(TurnOptions options) {
    CompletionRequest request;
    Query query;
    StepRecord& record = query.record;
    if (!options.force_call.empty()) {
        request.grammar = format->call_grammar(options.force_call, config.thinking.mode);
        record.grammar = describe_grammar(options.force_call);
        for (const tools::ToolSpec* spec : options.force_call) record.forced.push_back(spec->name);
    }
    append(format->open_reply(config.thinking.mode));
    record.uid = Uid::make();
    record.trajectory = trajectory;
    record.sequence = next_step;
    record.delta = unrecorded();
    record.said = std::exchange(said, {});
    record.sampling = config.sampling;
    record.began_ms = unix_ms();

    request.prompt = log.tokens();
    request.sampling = config.sampling;
    request.max_tokens = reply_allowance(config.limits, spent());
    request.stop_tokens = stop_tokens;
    if (config.thinking.budget_tokens > 0) {
        request.thinking = {*format->thinking_tags(),
                            format->opens_thinking(config.thinking.mode),
                            config.thinking.budget_tokens};
    }
    std::shared_ptr<TextStream> stream;
    if (events) {
        auto executor = co_await boost::asio::this_coro::executor;
        stream = std::make_shared<TextStream>(events, model.tokenizer(), stop_tokens, executor);
        request.on_token = [stream](Token token) { stream->push(token); };
    }
    auto work = complete_into(model, std::move(request), record.reply);
    auto waiting = run_until(std::move(work), deadline());
    query.late = co_await std::move(waiting);
    if (stream) stream->finish();

    check_completion(record.reply);
    append_reply(record.reply);
    const auto closing = format->close_reply(record.reply.tokens);
    append(closing);
    for (const Segment& segment : closing) {
        record.closing.emplace_back(segment.origin, segment.tokens);
    }
    record.text = model::to_valid_utf8(model.tokenizer().decode(record.reply.tokens));
    record.ended_ms = unix_ms();
    ++usage.turns;
    ++next_step;
    recorder.record_step(record);
    recorded = log.size();
    co_return query;
}

boost::asio::awaitable<void> Agent::Impl::execute(std::vector<Request> requests,
                                                  StepResult& result) {
    std::vector<Message> messages;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        Request& request = requests[i];
        const std::int64_t began = unix_ms();
        if (request.refusal.empty()) request.refusal = reason_not_to_run(result);
        tools::ToolResult outcome;
        if (request.refusal.empty()) {
            auto work = call_tool(request.call, result);
            outcome = co_await std::move(work);
        } else {
            outcome.status = request.invalid ? tools::ToolStatus::invalid_call
                                             : tools::ToolStatus::cancelled;
            outcome.text = request.refusal;
            outcome.details["not_run"] = true;
        }
        note_dropped("tool", outcome.text);
        messages.push_back(
            answer(request.call, outcome.text, messages, requests.size() - 1 - i));
        record_call(result.step, static_cast<int>(i), request.call, outcome, messages.back(),
                    began);
        result.results.emplace_back(request.call, std::move(outcome));
    }
    append(format->render_results(messages));
}

/// Ends the run with `result.ended` where the outcome says so.
boost::asio::awaitable<tools::ToolResult> Agent::Impl::call_tool(tools::ToolCall call,
                                                                 StepResult& result) {
    emit(ToolStarted{call});
    ++usage.tool_calls;
    const auto began = std::chrono::steady_clock::now();
    tools::ToolResult outcome;
    auto work = call_into(tools, call, outcome);
    auto waiting = run_until(std::move(work), deadline());
    const bool late = co_await std::move(waiting);
    // Asked for here, not in a coroutine of its own: awaiting one throws after a cancellation.
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    if (late) {
        outcome.status = tools::ToolStatus::timed_out;
        outcome.text += "\nStopped: the time of the whole run is over.";
        result.ended = ExitStatus::time_limit;
    } else if (state.cancelled() != boost::asio::cancellation_type::none) {
        result.ended = ExitStatus::cancelled;
    } else if (outcome.status == tools::ToolStatus::harness_error) {
        result.ended = ExitStatus::tool_infrastructure_error;
        result.error = fmt::format("tool '{}': {}", call.name, outcome.text);
    } else if (outcome.status == tools::ToolStatus::ok &&
               std::ranges::find(config.final_tools, call.name) != config.final_tools.end()) {
        result.ended = ExitStatus::finished;
        result.final_message = outcome.text;
    }
    stuck.observe_call(call.name, call.arguments, outcome.text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    emit(ToolFinished{call, outcome.status, outcome.text, took.count()});
    co_return outcome;
}

/// Why no further call of this turn may run, or empty.
std::string Agent::Impl::reason_not_to_run(StepResult& result) const {
    if (result.ended && *result.ended != ExitStatus::tool_call_limit) {
        return fmt::format("Not run: the run has ended ({}).", to_string(*result.ended));
    }
    if (config.limits.tool_calls > 0 && usage.tool_calls >= config.limits.tool_calls) {
        result.ended = ExitStatus::tool_call_limit;
        return fmt::format("Not run: the limit of {} tool calls is reached.",
                           config.limits.tool_calls);
    }
    return {};
}

/// The result as a message within the budget; the last one of a turn carries the notice of what is
/// left of the run.
Message Agent::Impl::answer(const tools::ToolCall& call, const std::string& text,
                            const std::vector<Message>& before, std::size_t after) const {
    constexpr std::int64_t kSmallest = 16;  // of each result that is still to come
    std::int64_t room = results_allowance(config.limits, spent());
    for (const Message& message : before) room -= static_cast<std::int64_t>(message.tokens.size());
    room -= kSmallest * static_cast<std::int64_t>(after);
    if (config.limits.tool_output_tokens > 0) {
        room = std::min<std::int64_t>(room, config.limits.tool_output_tokens);
    }
    const std::string reference = "sha256:" + store::to_hex(store::sha256(text));
    ToolOutput output = cut_tool_output(
        text, static_cast<int>(std::max<std::int64_t>(room, 1)), reference, model.tokenizer());
    if (after == 0 && room > 0) {
        const std::string notice = budget_notice(config.limits, spent());
        const Tokens tokens = model.tokenizer().encode(notice);
        output.shown += notice;
        output.tokens.insert(output.tokens.end(), tokens.begin(), tokens.end());
    }
    return {Role::tool, std::move(output.shown), {}, call.id, call.name, std::move(output.tokens)};
}

void Agent::Impl::record_call(const Uid& step, int sequence, const tools::ToolCall& call,
                              const tools::ToolResult& result, const Message& shown,
                              std::int64_t began_ms) {
    const tools::Tool* tool = tools.find(call.name);
    const tools::Effect effect = tool ? tool->spec().effect : tools::Effect::pure;
    recorder.record_tool_call(
        {step, sequence, call, effect, result, shown.text, began_ms, unix_ms()});
}

std::vector<Request> Agent::Impl::requests_of(const ParsedReply& reply, FinishReason finish,
                                              int sequence) const {
    std::string cut;
    if (finish == FinishReason::length) {
        cut = fmt::format("Not run: your reply was cut off by the limit of {} tokens, so none of "
                          "its calls was carried out. Make the call smaller, or split the work "
                          "over several turns.", config.limits.reply_tokens);
    }
    std::vector<Request> out;
    const auto add = [&](std::string name, std::string arguments, std::string refusal) {
        std::string id = fmt::format("s{}c{}", sequence, out.size());
        const bool invalid = !refusal.empty();
        out.push_back({{std::move(id), std::move(name), std::move(arguments)},
                       std::move(refusal), invalid});
    };
    auto broken = reply.malformed.begin();
    for (std::size_t i = 0; i <= reply.calls.size(); ++i) {
        for (; broken != reply.malformed.end() && broken->calls_before <= i; ++broken) {
            add({}, broken->raw,
                cut.empty() ? fmt::format("Not run: this call cannot be read: {}. Write it again "
                                          "{}.", broken->error, format->call_syntax())
                            : cut);
        }
        if (i < reply.calls.size()) add(reply.calls[i].name, reply.calls[i].arguments, cut);
    }
    return out;
}

std::string Agent::Impl::complaint_about(const ParsedReply& reply, FinishReason finish) const {
    if (finish == FinishReason::length) {
        return fmt::format("Your reply was cut off by the limit of {} tokens. Continue with a "
                           "shorter one.", config.limits.reply_tokens);
    }
    if (reply.unclosed_thinking) {
        return "Your reply ended inside its thinking part, so nothing in it was run or shown. "
               "Close the thinking part first, then answer or call a tool.";
    }
    return {};
}

}  // namespace skein::agent
