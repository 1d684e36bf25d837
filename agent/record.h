#pragma once
// Everything that happened, as it happens: what an agent hands to whoever stores it. PUBLIC.
// agent/store implements this in SQLite; tests use MemoryRecorder.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/context/token_log.h"
#include "agent/limits.h"
#include "agent/llm/language_model.h"
#include "model/sampling/sampler.h"
#include "tools/tool.h"

namespace skein::agent {

/// 16 bytes: 48-bit milliseconds, then random; sorts by time (UUID version 7 layout).
struct Uid {
    std::array<std::uint8_t, 16> bytes{};
    auto operator<=>(const Uid&) const = default;
    std::string hex() const;
    static Uid make();
    static std::optional<Uid> parse(std::string_view hex);
};

struct TrajectoryRecord {
    Uid uid;
    std::optional<Uid> parent;
    std::string role;          ///< agent name, e.g. "root"
    std::string task;          ///< task id, may be empty
    std::string model;         ///< LanguageModel::description()
    std::string chat_format;
    std::string tools_json;    ///< JSON array of the tool specs offered
    std::string config_json;   ///< limits, sampling
};

/// One model call. `segment_tokens` are the tokens appended since the last step (the delta of the
/// prompt), `reply` what was sampled; both with origins, so the whole log can be rebuilt.
struct StepRecord {
    Uid uid;
    Uid trajectory;
    int sequence = 0;
    std::vector<std::pair<Origin, Tokens>> delta;
    /// What a replay must do to get here: the raw texts given to `Agent::say` (or `run`) since the
    /// last step, and the names of the tools of TurnOptions::force_call.
    std::vector<std::string> said, forced;
    Completion reply;
    std::vector<std::pair<Origin, Tokens>> closing;  ///< glue after the reply
    model::SamplingParams sampling;
    std::string grammar;  ///< what constrained the reply, human readable; empty: free
    std::string text;     ///< decoded reply, a view for readers
    std::int64_t began_ms = 0, ended_ms = 0;  ///< Unix milliseconds
};

struct ToolCallRecord {
    Uid step;
    int sequence = 0;  ///< order in which results were fed to the model
    tools::ToolCall call;
    tools::Effect effect = tools::Effect::write;
    tools::ToolResult result;   ///< whole text; stored by content hash
    std::string shown;          ///< what the model saw after truncation
    std::int64_t began_ms = 0, ended_ms = 0;
};

struct RewardRecord {
    std::string scope;      ///< "step", "trajectory", "task", "evaluation"
    Uid ref;
    std::string component;  ///< e.g. "speedup"
    double value = 0;
    std::string verifier;   ///< id and version
    std::string details_json;
};

class Recorder {
  public:
    virtual ~Recorder() = default;
    virtual void begin_trajectory(const TrajectoryRecord& record) = 0;
    virtual void record_step(const StepRecord& record) = 0;
    virtual void record_tool_call(const ToolCallRecord& record) = 0;
    virtual void record_reward(const RewardRecord& record) = 0;
    /// Free-form facts of a run: `kind` is a short name, `json` an object.
    virtual void record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                              std::string_view json) = 0;
    /// Tokens appended after the last step that no later step will cover (end of a run).
    virtual void finish_trajectory(const Uid& trajectory, ExitStatus status,
                                   std::string_view final_message,
                                   std::span<const std::pair<Origin, Tokens>> tail) = 0;
};

}  // namespace skein::agent
