#pragma once
// Feeds a stored trajectory back to the agent's own loop. PUBLIC.
//
// Playback: the model answers with the recorded tokens, the tools with the recorded results, and
// everything the loop makes of them (prompts, parses, calls, what the model was shown, the end)
// must equal the record, token for token. With a live model and a live recorder behind, the same
// parts resume a run: they replay what is recorded, then go on.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/llm/language_model.h"
#include "agent/record.h"
#include "agent/store/reader.h"

namespace skein::agent::store {

/// What the parts of one replay share: the record, how far it was followed, the first difference.
class ReplayState {
  public:
    explicit ReplayState(std::vector<StoredStep> steps);
    /// The same for a run that goes on: calls of the last step that were cut off (cancelled, or
    /// ended by a failure of the harness) count as not answered.
    static ReplayState for_resume(std::vector<StoredStep> steps);

    const std::vector<StoredStep>& steps() const { return steps_; }
    /// Keeps the first difference; later ones follow from it.
    void differ(std::string what);
    const std::optional<std::string>& difference() const { return difference_; }

    std::size_t asked = 0;     ///< model calls answered from the record
    std::size_t recorded = 0;  ///< steps the loop handed to the recorder

  private:
    std::vector<StoredStep> steps_;
    std::optional<std::string> difference_;
};

/// Answers with the recorded completions while they last, then asks `live` (or reports an error).
class ReplayModel : public LanguageModel {
  public:
    /// Lifetime: state, tokenizer and live must outlive this. `live` may be null.
    ReplayModel(ReplayState& state, const model::Tokenizer& tokenizer,
                const TrajectoryRecord& trajectory, LanguageModel* live);
    const model::Tokenizer& tokenizer() const override { return tokenizer_; }
    int max_context() const override;
    std::string description() const override { return description_; }
    std::string chat_format() const override { return chat_format_; }
    boost::asio::awaitable<Completion> complete(CompletionRequest request) override;

  private:
    ReplayState& state_;
    const model::Tokenizer& tokenizer_;
    std::string description_, chat_format_;
    LanguageModel* live_;
    Tokens expected_;  // the log as recorded, up to and without the next reply
};

/// Compares what the loop records with the store, and hands on only what is new. Rewards and events
/// of the replayed part are not handed on.
class ReplayRecorder : public Recorder {
  public:
    /// `live` may be null (playback). Lifetime: state and live must outlive this.
    ReplayRecorder(ReplayState& state, const StoredTrajectory& stored, Recorder* live);

    void begin_trajectory(const TrajectoryRecord& record) override;
    void record_step(const StepRecord& record) override;
    void record_tool_call(const ToolCallRecord& record) override;
    void record_reward(const RewardRecord& record) override;
    void record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                      std::string_view json) override;
    void finish_trajectory(const Uid& trajectory, ExitStatus status, std::string_view final_message,
                           std::span<const std::pair<Origin, Tokens>> tail) override;
    bool live_now() const { return state_.recorded > state_.steps().size(); }

  private:
    Uid stored_step(const Uid& uid) const;

    ReplayState& state_;
    StoredTrajectory stored_;
    Recorder* live_;
    std::map<Uid, std::size_t> step_index_;  // of the loop's own step uids
};

/// A registry with the trajectory's tools that answers from the record.
/// Throws: Error when the stored tool list cannot be read.
std::unique_ptr<tools::Registry> make_replay_registry(ReplayState& state,
                                                      const TrajectoryRecord& trajectory);

struct PlaybackReport {
    enum class Status { identical, diverged, not_replayable };
    Status status = Status::identical;
    std::size_t steps = 0;         ///< followed without a difference
    std::size_t tokens = 0;        ///< of the log, compared
    std::string first_divergence;  ///< step, what, recorded and replayed
};
std::string_view to_string(PlaybackReport::Status status);

/// Plays one stored trajectory through the loop. `tokenizer` must be the run's.
boost::asio::awaitable<PlaybackReport> playback(const Reader& reader,
                                                const StoredTrajectory& trajectory,
                                                const model::Tokenizer& tokenizer);

}  // namespace skein::agent::store
