#include "agent/agent.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <stdexcept>

#include "agent/agent_impl.h"
#include "model/error.h"

namespace skein::agent {

namespace {

std::string describe_tools(const tools::Registry& tools) {
    boost::json::array list;
    for (const tools::ToolSpec* spec : tools.specs()) {
        list.push_back(boost::json::object{{"name", spec->name},
                                           {"description", spec->description},
                                           {"parameters", spec->parameters},
                                           {"effect", tools::to_string(spec->effect)}});
    }
    return boost::json::serialize(list);
}

std::string describe_config(const AgentConfig& config) {
    const RunLimits& limits = config.limits;
    const model::SamplingParams& sampling = config.sampling;
    return boost::json::serialize(boost::json::object{
        {"instruction", model::to_valid_utf8(config.instruction)},
        {"limits", boost::json::object{{"turns", limits.turns},
                                       {"tool_calls", limits.tool_calls},
                                       {"tokens", limits.tokens},
                                       {"output_tokens", limits.output_tokens},
                                       {"reply_tokens", limits.reply_tokens},
                                       {"wall_time_ms", limits.wall_time.count()},
                                       {"tool_output_tokens", limits.tool_output_tokens},
                                       {"same_action", limits.same_action}}},
        {"sampling", boost::json::object{{"temperature", sampling.temperature},
                                         {"top_k", sampling.top_k},
                                         {"top_p", sampling.top_p},
                                         {"min_p", sampling.min_p},
                                         {"seed", sampling.seed}}},
        {"thinking", boost::json::object{{"mode", to_string(config.thinking.mode)},
                                         {"budget_tokens", config.thinking.budget_tokens}}},
        {"final_tools", boost::json::value_from(config.final_tools)}});
}

std::size_t count_tokens(const std::vector<Segment>& segments) {
    std::size_t count = 0;
    for (const Segment& segment : segments) count += segment.tokens.size();
    return count;
}

void check_thinking(const Thinking& thinking, const ChatFormat& format) {
    if (!format.supports(thinking.mode)) {
        throw model::Error(fmt::format("chat format '{}' has no thinking mode '{}'", format.name(),
                                       to_string(thinking.mode)));
    }
    if (thinking.budget_tokens > 0 && !format.thinking_tags()) {
        throw model::Error(fmt::format(
            "chat format '{}' has no thinking part whose end is a token of this model, so a budget "
            "of {} thinking tokens cannot be kept", format.name(), thinking.budget_tokens));
    }
}

}  // namespace

Agent::Impl::Impl(AgentConfig config_in, LanguageModel& model_in, tools::Registry& tools_in,
                  Recorder& recorder_in, EventSink events_in)
    : config(std::move(config_in)), model(model_in), tools(tools_in), recorder(recorder_in),
      events(std::move(events_in)),
      format(make_chat_format(model_in.chat_format(), model_in.tokenizer())),
      stop_tokens(format->stop_tokens()),
      opening_tokens(count_tokens(format->open_reply(config.thinking.mode))),
      stuck(config.limits.same_action) {
    check_thinking(config.thinking, *format);
}

void Agent::Impl::begin() {
    if (ended) throw std::logic_error("agent '" + config.name + "': the run has already ended");
    if (begun) return;
    recorder.begin_trajectory({trajectory, config.parent, config.name, config.task_id,
                               model.description(), std::string(format->name()),
                               describe_tools(tools), describe_config(config)});
    begun = true;
    started = std::chrono::steady_clock::now();
    open_log();
}

void Agent::Impl::open_log() {
    const std::string text = config.instruction.empty() ? std::string(format->default_system())
                                                        : config.instruction;
    const auto specs = tools.specs();
    if (text.empty() && specs.empty()) return;
    note_dropped("instruction", text);
    append(format->render_system(text, specs, config.thinking.mode));
}

ParsedReply Agent::Impl::parse(std::span<const Token> reply) const {
    const auto specs = tools.specs();
    return format->parse(reply, {specs, config.thinking.mode});
}

void Agent::Impl::note_dropped(std::string_view where, std::string_view text) {
    const std::size_t dropped = model.tokenizer().count_dropped(text);
    if (dropped > 0) note("dropped_bytes", {{"where", where}, {"bytes", dropped}});
}

void Agent::Impl::say(const std::string& text) {
    begin();
    Message message;
    message.role = Role::user;
    message.text = text;
    note_dropped("user", text);
    append(format->render(message));
}

void Agent::Impl::say_from_outside(const std::string& text) {
    say(text);
    said.push_back(text);
}

void Agent::Impl::append(const std::vector<Segment>& segments) {
    for (const Segment& segment : segments) {
        log.append(segment.origin, segment.tokens);
        usage.prompt_tokens += static_cast<std::int64_t>(segment.tokens.size());
    }
}

void Agent::Impl::append_reply(const Completion& reply) {
    for (std::size_t begin = 0, end = 0; begin < reply.tokens.size(); begin = end) {
        const Origin origin = reply.origins[begin];
        while (end < reply.tokens.size() && reply.origins[end] == origin) ++end;
        const std::size_t count = end - begin;
        log.append(origin, std::span(reply.tokens).subspan(begin, count));
        std::int64_t& counter =
            origin == Origin::sampled ? usage.sampled_tokens : usage.prompt_tokens;
        counter += static_cast<std::int64_t>(count);
    }
    usage.reused_tokens += reply.reused_tokens;
    usage.evaluated_tokens += reply.evaluated_tokens;
}

std::vector<std::pair<Origin, Tokens>> Agent::Impl::unrecorded() const {
    std::vector<std::pair<Origin, Tokens>> out;
    for (const SegmentSpan& span : log.segments()) {
        if (span.begin < recorded) continue;
        const auto tokens = log.tokens().subspan(span.begin, span.end - span.begin);
        out.emplace_back(span.origin, Tokens(tokens.begin(), tokens.end()));
    }
    return out;
}

Spent Agent::Impl::spent(std::int64_t opening) const {
    const auto elapsed = std::chrono::steady_clock::now() - started;
    return {usage, static_cast<std::int64_t>(log.size()) + opening, model.max_context(),
            std::chrono::duration_cast<std::chrono::milliseconds>(elapsed)};
}

std::optional<std::chrono::steady_clock::time_point> Agent::Impl::deadline() const {
    if (config.limits.wall_time.count() <= 0) return std::nullopt;
    return started + config.limits.wall_time;
}

void Agent::Impl::note(std::string_view kind, boost::json::object facts) {
    recorder.record_event(trajectory, kind, boost::json::serialize(facts));
}

RunResult Agent::Impl::finish(ExitStatus status, std::string final_message, std::string error) {
    if (ended) return *ended;
    ended = RunResult{status, std::move(final_message), std::move(error), usage, trajectory};
    if (begun) {
        if (!ended->error.empty()) {
            note("error", {{"message", model::to_valid_utf8(ended->error)},
                           {"exit_status", to_string(status)}});
        }
        const auto tail = unrecorded();
        recorder.finish_trajectory(trajectory, status, ended->final_message, tail);
    }
    emit(RunFinished{status, ended->final_message, usage});
    return *ended;
}

Agent::Agent(AgentConfig config, LanguageModel& model, tools::Registry& tools, Recorder& recorder,
             EventSink events)
    : impl_(std::make_unique<Impl>(std::move(config), model, tools, recorder, std::move(events))) {}

Agent::~Agent() {
    if (!impl_->begun || impl_->ended) return;
    try {
        impl_->finish(ExitStatus::cancelled, {}, "the agent was destroyed before its run ended");
    } catch (const std::exception&) {
        // The recorder is the only thing that could report this, and it is what failed.
    }
}

boost::asio::awaitable<RunResult> Agent::run(std::string task) {
    auto loop = impl_->loop([this, &task] { impl_->say_from_outside(task); });
    co_return co_await std::move(loop);
}

void Agent::say(std::string text) { impl_->say_from_outside(text); }

boost::asio::awaitable<Agent::StepResult> Agent::step(TurnOptions options) {
    auto turn = impl_->step(std::move(options));
    co_return co_await std::move(turn);
}

void Agent::restore(ResumePoint point) { impl_->restore(std::move(point)); }

RunResult Agent::finish(ExitStatus status, std::string final_message, std::string error) {
    return impl_->finish(status, std::move(final_message), std::move(error));
}

const TokenLog& Agent::log() const { return impl_->log; }
const Usage& Agent::usage() const { return impl_->usage; }
const Uid& Agent::trajectory() const { return impl_->trajectory; }

}  // namespace skein::agent
