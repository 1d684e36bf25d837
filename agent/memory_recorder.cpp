#include "agent/memory_recorder.h"

namespace skein::agent {

void MemoryRecorder::begin_trajectory(const TrajectoryRecord& record) {
    const std::scoped_lock lock(mutex_);
    trajectories.push_back(record);
}

void MemoryRecorder::record_step(const StepRecord& record) {
    const std::scoped_lock lock(mutex_);
    steps.push_back(record);
}

void MemoryRecorder::record_tool_call(const ToolCallRecord& record) {
    const std::scoped_lock lock(mutex_);
    tool_calls.push_back(record);
}

void MemoryRecorder::record_reward(const RewardRecord& record) {
    const std::scoped_lock lock(mutex_);
    rewards.push_back(record);
}

void MemoryRecorder::record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                                  std::string_view json) {
    const std::scoped_lock lock(mutex_);
    events.push_back({trajectory, std::string(kind), std::string(json)});
}

void MemoryRecorder::finish_trajectory(const Uid& trajectory, ExitStatus status,
                                       std::string_view final_message,
                                       std::span<const std::pair<Origin, Tokens>> tail) {
    const std::scoped_lock lock(mutex_);
    finishes.push_back(
        {trajectory, status, std::string(final_message), {tail.begin(), tail.end()}});
}

Tokens recorded_tokens(const MemoryRecorder& recorder, const Uid& trajectory) {
    Tokens all;
    const auto append = [&all](std::span<const Token> tokens) {
        all.insert(all.end(), tokens.begin(), tokens.end());
    };
    for (const StepRecord& step : recorder.steps) {
        if (step.trajectory != trajectory) continue;
        for (const auto& [origin, tokens] : step.delta) append(tokens);
        append(step.reply.tokens);
        for (const auto& [origin, tokens] : step.closing) append(tokens);
    }
    for (const auto& finish : recorder.finishes) {
        if (finish.trajectory != trajectory) continue;
        for (const auto& [origin, tokens] : finish.tail) append(tokens);
    }
    return all;
}

}  // namespace skein::agent
