#pragma once
// Writes a run as it happens. PUBLIC.
//
// Records are queued and committed in groups by one thread, so that the decode thread never waits
// for a disk. A failed write (disk full, folder gone) is thrown by the next call and by `flush`;
// from then on the store accepts nothing, so that no later row can stand without an earlier one.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "agent/record.h"

namespace skein::agent::store {

struct RunRecord {
    Uid uid;
    std::string harness;  ///< "agent", "kernel_opt"
    std::string command;  ///< the command line, for people
    std::string config;   ///< the resolved YAML
    std::string version;  ///< of skein
};

struct EpisodeRecord {
    Uid uid;
    std::string task_id, group_key, mode;
    int repetition = 0;
};

class Writer : public Recorder {
  public:
    /// A new store `directory/skein.db`; makes the directory. Throws: Error.
    static std::unique_ptr<Writer> create(const std::filesystem::path& directory,
                                          const RunRecord& run);
    /// An existing store, to go on with its run. Throws: Error.
    static std::unique_ptr<Writer> open(const std::filesystem::path& directory);
    ~Writer() override;  ///< commits what is queued; failures show in `flush` only

    void begin_trajectory(const TrajectoryRecord& record) override;
    void record_step(const StepRecord& record) override;
    void record_tool_call(const ToolCallRecord& record) override;
    void record_reward(const RewardRecord& record) override;
    void record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                      std::string_view json) override;
    void finish_trajectory(const Uid& trajectory, ExitStatus status, std::string_view final_message,
                           std::span<const std::pair<Origin, Tokens>> tail) override;

    void record_task(std::string_view id, int version, std::string_view json);
    void begin_episode(const EpisodeRecord& record);
    void finish_episode(const Uid& uid, std::string_view status, std::string_view stop_reason);
    /// Stores bytes by content; returns the SHA-256 in hexadecimal.
    std::string put_blob(std::string_view bytes);
    /// The run's state: "running", or its end with the result as JSON.
    void finish_run(std::string_view status, std::string_view result_json);
    /// Returns once everything recorded so far is committed. Throws: Error.
    void flush();

  private:
    struct Impl;
    explicit Writer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

std::int64_t now_ms();

}  // namespace skein::agent::store
