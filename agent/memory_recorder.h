#pragma once
// A Recorder that keeps everything in memory: tests, examples, runs that nobody wants on disk.

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/record.h"

namespace skein::agent {

/// Threads: one recorder may serve several agents; read the vectors when none of them runs.
class MemoryRecorder final : public Recorder {
  public:
    struct Event {
        std::optional<Uid> trajectory;
        std::string kind, json;
    };
    struct Finish {
        Uid trajectory;
        ExitStatus status = ExitStatus::finished;
        std::string final_message;
        std::vector<std::pair<Origin, Tokens>> tail;
    };

    void begin_trajectory(const TrajectoryRecord& record) override;
    void record_step(const StepRecord& record) override;
    void record_tool_call(const ToolCallRecord& record) override;
    void record_reward(const RewardRecord& record) override;
    void record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                      std::string_view json) override;
    void finish_trajectory(const Uid& trajectory, ExitStatus status, std::string_view final_message,
                           std::span<const std::pair<Origin, Tokens>> tail) override;

    std::vector<TrajectoryRecord> trajectories;
    std::vector<StepRecord> steps;
    std::vector<ToolCallRecord> tool_calls;
    std::vector<RewardRecord> rewards;
    std::vector<Event> events;
    std::vector<Finish> finishes;

  private:
    std::mutex mutex_;
};

/// The tokens of a trajectory put together again: deltas, replies, closings and the tail, in order.
/// Equal to the agent's TokenLog, segment for segment except that runs of one origin may join.
Tokens recorded_tokens(const MemoryRecorder& recorder, const Uid& trajectory);

}  // namespace skein::agent
