#include "agent/store/replay.h"

#include <boost/json/parse.hpp>
#include <limits>
#include <set>

namespace skein::agent::store {
namespace {

std::string excerpt(std::string_view bytes) {
    constexpr std::size_t kShown = 80;
    std::string text = model::to_valid_utf8(bytes.substr(0, kShown));
    return "'" + text + (bytes.size() > kShown ? "…'" : "'");
}

/// The first position where the two differ, described, or nothing.
std::optional<std::string> compare_tokens(std::span<const Token> stored,
                                          std::span<const Token> replayed) {
    const std::size_t n = std::min(stored.size(), replayed.size());
    for (std::size_t i = 0; i < n; ++i) {
        if (stored[i] != replayed[i]) {
            return "token " + std::to_string(i) + ": recorded " + std::to_string(stored[i]) +
                   ", replayed " + std::to_string(replayed[i]);
        }
    }
    if (stored.size() == replayed.size()) return std::nullopt;
    return "length: recorded " + std::to_string(stored.size()) + " tokens, replayed " +
           std::to_string(replayed.size());
}

std::optional<std::string> compare_runs(const Runs& stored, const Runs& replayed) {
    if (stored.size() != replayed.size()) {
        return std::to_string(stored.size()) + " segments recorded, " +
               std::to_string(replayed.size()) + " replayed";
    }
    for (std::size_t i = 0; i < stored.size(); ++i) {
        if (stored[i].first != replayed[i].first) {
            return "segment " + std::to_string(i) + " origin: recorded " +
                   std::string(to_string(stored[i].first)) + ", replayed " +
                   std::string(to_string(replayed[i].first));
        }
        if (auto what = compare_tokens(stored[i].second, replayed[i].second)) {
            return "segment " + std::to_string(i) + " " + *what;
        }
    }
    return std::nullopt;
}

void append(Tokens& log, const Runs& runs) {
    for (const auto& run : runs) log.insert(log.end(), run.second.begin(), run.second.end());
}

std::string at_step(std::size_t index, const std::string& what) {
    return "step " + std::to_string(index) + ", " + what;
}

/// The agent's settings as the run was begun with.
AgentConfig config_of(const TrajectoryRecord& record) {
    const boost::json::value parsed = boost::json::parse(record.config_json);
    const boost::json::object& json = parsed.as_object();
    const boost::json::object& limits = json.at("limits").as_object();
    AgentConfig config;
    config.name = record.role;
    config.task_id = record.task;
    config.parent = record.parent;
    config.instruction = json.at("instruction").as_string();
    config.limits.turns = limits.at("turns").to_number<int>();
    config.limits.tool_calls = limits.at("tool_calls").to_number<int>();
    config.limits.tokens = limits.at("tokens").to_number<std::int64_t>();
    config.limits.output_tokens = limits.at("output_tokens").to_number<std::int64_t>();
    config.limits.reply_tokens = limits.at("reply_tokens").to_number<int>();
    config.limits.tool_output_tokens = limits.at("tool_output_tokens").to_number<int>();
    config.limits.same_action = limits.at("same_action").to_number<int>();
    if (const boost::json::value* thinking = json.if_contains("thinking")) {
        const std::string_view mode = thinking->at("mode").as_string();
        config.thinking.mode = parse_thinking_mode(mode).value_or(ThinkingMode::adaptive);
        config.thinking.budget_tokens = thinking->at("budget_tokens").to_number<int>();
    }
    // Wall time is not played back: a recorded reply takes no time.
    const boost::json::value& final_tools = json.at("final_tools");
    for (const auto& name : final_tools.as_array()) {
        config.final_tools.emplace_back(name.as_string());
    }
    return config;
}

/// Answers with the recorded result of the same call in the step being replayed.
class ReplayTool : public tools::Tool {
  public:
    ReplayTool(ReplayState& state, tools::ToolSpec spec) : state_(state), spec_(std::move(spec)) {}
    const tools::ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<tools::ToolResult> call(boost::json::object arguments) override {
        tools::ToolResult result;
        const std::size_t step = state_.asked - 1;
        if (step != step_) {
            step_ = step;
            used_.clear();
        }
        const auto& calls = state_.steps().at(step).calls;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            if (used_.contains(i) || calls[i].call.name != spec_.name) continue;
            boost::json::error_code bad;
            const boost::json::value recorded = boost::json::parse(calls[i].call.arguments, bad);
            if (bad || !recorded.is_object() || recorded.get_object() != arguments) continue;
            used_.insert(i);
            co_return calls[i].as_record(state_.steps()[step].record.uid).result;
        }
        state_.differ(at_step(
            step, "the loop calls " + spec_.name + " with arguments that are not in the record"));
        result.status = tools::ToolStatus::harness_error;
        result.text = "not recorded";
        co_return result;
    }

  private:
    ReplayState& state_;
    tools::ToolSpec spec_;
    std::size_t step_ = std::numeric_limits<std::size_t>::max();
    std::set<std::size_t> used_;
};

}  // namespace

ReplayState::ReplayState(std::vector<StoredStep> steps) : steps_(std::move(steps)) {}

ReplayState ReplayState::for_resume(std::vector<StoredStep> steps) {
    if (!steps.empty()) {
        std::erase_if(steps.back().calls, [](const StoredToolCall& call) {
            return call.status == tools::to_string(tools::ToolStatus::cancelled) ||
                   call.status == tools::to_string(tools::ToolStatus::harness_error);
        });
    }
    return ReplayState(std::move(steps));
}

void ReplayState::differ(std::string what) {
    if (!difference_) difference_ = std::move(what);
}

ReplayModel::ReplayModel(ReplayState& state, const model::Tokenizer& tokenizer,
                         const TrajectoryRecord& trajectory, LanguageModel* live)
    : state_(state),
      tokenizer_(tokenizer),
      description_(trajectory.model),
      chat_format_(trajectory.chat_format),
      live_(live) {}

int ReplayModel::max_context() const {
    return live_ != nullptr ? live_->max_context() : std::numeric_limits<int>::max();
}

boost::asio::awaitable<Completion> ReplayModel::complete(CompletionRequest request) {
    if (state_.asked >= state_.steps().size() || state_.difference()) {
        if (live_ != nullptr && !state_.difference()) {
            auto pending = live_->complete(std::move(request));
            co_return co_await std::move(pending);
        }
        state_.differ(at_step(state_.asked, "the loop asks the model once more than recorded"));
        Completion none;
        none.finish = FinishReason::error;
        none.error = *state_.difference();
        co_return none;
    }
    const StepRecord& step = state_.steps()[state_.asked].record;
    append(expected_, step.delta);
    if (auto what = compare_tokens(expected_, request.prompt)) {
        state_.differ(at_step(state_.asked, "prompt " + *what));
    }
    expected_.insert(expected_.end(), step.reply.tokens.begin(), step.reply.tokens.end());
    append(expected_, step.closing);
    ++state_.asked;
    if (request.on_token) {
        for (const Token token : step.reply.tokens) request.on_token(token);
    }
    co_return step.reply;
}

ReplayRecorder::ReplayRecorder(ReplayState& state, const StoredTrajectory& stored, Recorder* live)
    : state_(state), stored_(stored), live_(live) {}

void ReplayRecorder::begin_trajectory(const TrajectoryRecord& record) {
    if (record.tools_json != stored_.record.tools_json) {
        state_.differ("the tools offered differ from the recorded ones");
    }
    if (record.chat_format != stored_.record.chat_format) {
        state_.differ("chat format: recorded " + stored_.record.chat_format + ", replayed " +
                      record.chat_format);
    }
}

void ReplayRecorder::record_step(const StepRecord& record) {
    const std::size_t index = state_.recorded++;
    step_index_[record.uid] = index;
    if (index >= state_.steps().size()) {
        if (live_ == nullptr) {
            state_.differ(at_step(index, "one more than recorded"));
            return;
        }
        StepRecord mine = record;
        mine.trajectory = stored_.record.uid;
        live_->record_step(mine);
        return;
    }
    const StepRecord& stored = state_.steps()[index].record;
    if (auto what = compare_runs(stored.delta, record.delta)) {
        state_.differ(at_step(index, "prompt " + *what));
    }
    if (auto what = compare_tokens(stored.reply.tokens, record.reply.tokens)) {
        state_.differ(at_step(index, "reply " + *what));
    }
    if (auto what = compare_runs(stored.closing, record.closing)) {
        state_.differ(at_step(index, "closing " + *what));
    }
    if (stored.text != record.text) state_.differ(at_step(index, "the shown text differs"));
    if (stored.grammar != record.grammar) {
        state_.differ(at_step(index, "constraint: recorded " + excerpt(stored.grammar) +
                                         ", replayed " + excerpt(record.grammar)));
    }
}

Uid ReplayRecorder::stored_step(const Uid& uid) const {
    const auto found = step_index_.find(uid);
    if (found == step_index_.end() || found->second >= state_.steps().size()) return uid;
    return state_.steps()[found->second].record.uid;
}

void ReplayRecorder::record_tool_call(const ToolCallRecord& record) {
    const auto found = step_index_.find(record.step);
    const std::size_t index = found == step_index_.end() ? state_.steps().size() : found->second;
    const StoredToolCall* stored = nullptr;
    if (index < state_.steps().size()) {
        for (const StoredToolCall& call : state_.steps()[index].calls) {
            if (call.sequence == record.sequence) stored = &call;
        }
    }
    if (stored == nullptr) {
        // New, or cut off between the step and its result.
        if (live_ == nullptr) {
            state_.differ(at_step(
                index, "a call of " + excerpt(record.call.name) + " that is not in the record"));
            return;
        }
        ToolCallRecord mine = record;
        mine.step = stored_step(record.step);
        live_->record_tool_call(mine);
        return;
    }
    const std::string where = "call " + std::to_string(record.sequence) + " ";
    if (stored->call.name != record.call.name || stored->call.arguments != record.call.arguments) {
        state_.differ(at_step(index, where + "recorded " + excerpt(stored->call.name) + " " +
                                         excerpt(stored->call.arguments) + ", replayed " +
                                         excerpt(record.call.name) + " " +
                                         excerpt(record.call.arguments)));
    }
    if (stored->result != record.result.text) {
        state_.differ(at_step(index, where + "result: recorded " + excerpt(stored->result) +
                                         ", replayed " + excerpt(record.result.text)));
    }
    if (stored->shown != record.shown) {
        state_.differ(at_step(index, where + "what the model was shown differs"));
    }
}

void ReplayRecorder::record_reward(const RewardRecord& record) {
    if (live_ != nullptr && live_now()) live_->record_reward(record);
}

void ReplayRecorder::record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                                  std::string_view json) {
    if (live_ == nullptr || !live_now()) return;
    live_->record_event(trajectory ? std::optional<Uid>(stored_.record.uid) : std::nullopt, kind,
                        json);
}

void ReplayRecorder::finish_trajectory(const Uid&, ExitStatus status,
                                       std::string_view final_message,
                                       std::span<const std::pair<Origin, Tokens>> tail) {
    // With a live recorder the run was interrupted in some way and is being continued.
    const bool ended_before = live_ == nullptr ? stored_.status != "running"
                                               : stored_.status == to_string(ExitStatus::finished);
    if (!ended_before) {
        if (live_ != nullptr && !state_.difference()) {
            live_->finish_trajectory(stored_.record.uid, status, final_message, tail);
        }
        return;
    }
    if (state_.recorded < state_.steps().size()) {
        state_.differ(at_step(state_.recorded, "recorded, but the loop ended before it"));
    }
    if (stored_.status != to_string(status)) {
        state_.differ("end: recorded " + stored_.status + ", replayed " +
                      std::string(to_string(status)));
    }
}

std::unique_ptr<tools::Registry> make_replay_registry(ReplayState& state,
                                                      const TrajectoryRecord& trajectory) {
    auto registry = std::make_unique<tools::Registry>();
    try {
        const boost::json::value specs = boost::json::parse(trajectory.tools_json);
        for (const boost::json::value& item : specs.as_array()) {
            const boost::json::object& json = item.as_object();
            tools::ToolSpec spec;
            spec.name = json.at("name").as_string();
            spec.description = json.at("description").as_string();
            spec.parameters = json.at("parameters").as_object();
            if (const auto* effect = json.if_contains("effect")) {
                spec.effect = parse_effect(effect->as_string());
            }
            registry->add(std::make_unique<ReplayTool>(state, std::move(spec)));
        }
    } catch (const std::exception& error) {
        throw Error(std::string("store: the recorded tool list cannot be read: ") + error.what());
    }
    return registry;
}

namespace {

/// Says and forces what the record says was said and forced, step by step, through the real loop.
boost::asio::awaitable<void> drive(Agent& agent, const tools::Registry& registry,
                                   ReplayState& state, const StoredTrajectory& trajectory) {
    std::optional<ExitStatus> ended;
    std::string final_message;
    for (std::size_t i = 0; i < state.steps().size() && !ended && !state.difference(); ++i) {
        const StepRecord& step = state.steps()[i].record;
        for (const std::string& text : step.said) agent.say(text);
        TurnOptions turn;
        // Grammars are not sampled from again, so the offered tools' own specs are enough.
        for (const std::string& name : step.forced) {
            if (const tools::Tool* tool = registry.find(name)) {
                turn.force_call.push_back(&tool->spec());
            }
        }
        auto pending = agent.step(std::move(turn));
        const Agent::StepResult result = co_await std::move(pending);
        ended = result.ended;
        final_message = result.final_message;
    }
    if (trajectory.status == "running") co_return;  // the record has no end to compare with
    for (int i = 0; !ended && i <= static_cast<int>(ExitStatus::internal_error); ++i) {
        const auto status = static_cast<ExitStatus>(i);
        if (to_string(status) == trajectory.status) {
            ended = status;  // the harness, not the loop, ended this run
            final_message = trajectory.final_message;
        }
    }
    agent.finish(ended.value_or(ExitStatus::internal_error), final_message);
}

}  // namespace

boost::asio::awaitable<PlaybackReport> playback(const Reader& reader,
                                                const StoredTrajectory& trajectory,
                                                const model::Tokenizer& tokenizer) {
    PlaybackReport report;
    ReplayState state(reader.steps(trajectory.record.uid));
    std::unique_ptr<tools::Registry> registry;
    AgentConfig config;
    try {
        registry = make_replay_registry(state, trajectory.record);
        config = config_of(trajectory.record);
    } catch (const std::exception& error) {
        report.status = PlaybackReport::Status::not_replayable;
        report.first_divergence = error.what();
        co_return report;
    }
    ReplayModel model(state, tokenizer, trajectory.record, nullptr);
    ReplayRecorder recorder(state, trajectory, nullptr);
    Agent agent(std::move(config), model, *registry, recorder);
    auto driving = drive(agent, *registry, state, trajectory);
    co_await std::move(driving);
    if (!state.difference()) {
        const TokenLog stored = reader.token_log(trajectory.record.uid);
        // After a crash the loop may have appended results that no later step stored.
        const std::size_t n = trajectory.status == "running"
                                  ? std::min(stored.size(), agent.log().size())
                                  : std::max(stored.size(), agent.log().size());
        const auto replayed = agent.log().tokens();
        if (auto what = compare_tokens(stored.tokens().first(std::min(n, stored.size())),
                                       replayed.first(std::min(n, replayed.size())))) {
            state.differ("the whole log, " + *what);
        }
        report.tokens = n;
    }
    report.steps = state.recorded;
    if (state.difference()) {
        report.status = PlaybackReport::Status::diverged;
        report.first_divergence = *state.difference();
    }
    co_return report;
}

std::string_view to_string(PlaybackReport::Status status) {
    switch (status) {
        case PlaybackReport::Status::identical:
            return "identical";
        case PlaybackReport::Status::diverged:
            return "diverged";
        case PlaybackReport::Status::not_replayable:
            return "not_replayable";
    }
    return "diverged";
}

}  // namespace skein::agent::store
