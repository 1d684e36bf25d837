#pragma once
// Reads a stored run. PUBLIC. Opens its own read-only connection; a running run can be read.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/record.h"
#include "agent/store/codec.h"
#include "agent/store/error.h"

namespace skein::agent::store {

struct StoredRun {
    Uid uid;
    std::string harness, command, config, version, status, result_json;
    std::int64_t began_ms = 0;
    std::optional<std::int64_t> ended_ms;
    std::int64_t n_trajectories = 0, n_steps = 0, n_tokens = 0;
};

struct StoredTrajectory {
    TrajectoryRecord record;
    std::string status, final_message;  ///< status "running" when the end was never stored
    std::int64_t began_ms = 0;
};

struct StoredToolCall {
    int sequence = 0;
    tools::ToolCall call;
    std::string effect, status, result, shown, details_json;
    std::int64_t began_ms = 0, ended_ms = 0;
    /// As it was recorded. Throws: Error for a status this build does not know.
    ToolCallRecord as_record(const Uid& step) const;
};

/// Throws: Error for a name this build does not know.
tools::Effect parse_effect(std::string_view name);

struct StoredStep {
    StepRecord record;  ///< everything that was recorded, origins and segment borders included
    std::vector<StoredToolCall> calls;
};

struct StoredEvent {
    std::int64_t id = 0;
    std::optional<Uid> trajectory;
    std::string kind, json;
    std::int64_t at_ms = 0;
};

struct StoredReward {
    RewardRecord record;
    std::int64_t at_ms = 0;
};

struct StoredEpisode {
    Uid uid;
    std::string task_id, group_key, mode, status, stop_reason;
    int repetition = 0;
};

class Reader {
  public:
    /// Throws: Error when `directory/skein.db` is missing or not a store.
    explicit Reader(const std::filesystem::path& directory);
    ~Reader();
    Reader(Reader&&) noexcept;

    StoredRun run() const;
    std::vector<StoredTrajectory> trajectories() const;  ///< oldest first
    std::vector<StoredStep> steps(const Uid& trajectory) const;
    /// The whole TokenLog: every step's segments, then the tail. Throws: Error when a segment's
    /// hash differs.
    TokenLog token_log(const Uid& trajectory) const;
    /// What finish_trajectory stored after the last step. A tail before later steps (the run was
    /// resumed) is superseded: their deltas hold its tokens again.
    Runs tail(const Uid& trajectory) const;
    std::vector<StoredEvent> events(std::string_view kind = {}) const;  ///< empty: all
    std::vector<StoredReward> rewards() const;
    std::vector<StoredEpisode> episodes() const;
    /// Throws: Error for an unknown or damaged blob.
    std::string blob(std::string_view hash_hex) const;
    /// SQLite's own check plus every token and blob hash; the first problem, or empty.
    std::string verify() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace skein::agent::store
