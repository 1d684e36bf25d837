#pragma once
// The loop: limits, query, execute, append; until a final answer or a limit. PUBLIC.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/chat/chat_format.h"
#include "agent/event.h"
#include "agent/limits.h"
#include "agent/llm/language_model.h"
#include "agent/record.h"
#include "tools/registry.h"

namespace skein::agent {

struct AgentConfig {
    std::string name = "root";
    std::string instruction;  ///< system text; empty: the chat format's default
    RunLimits limits;
    model::SamplingParams sampling;
    Thinking thinking;
    std::string task_id;
    std::optional<Uid> parent;
    std::vector<std::string> final_tools;  ///< a successful call of one of these ends the run
};

struct RunResult {
    ExitStatus exit_status = ExitStatus::finished;
    std::string final_message, error;
    Usage usage;
    Uid trajectory;
};

/// How one turn is constrained: exactly one call of one of these tools. Empty: the model is free.
struct TurnOptions {
    std::vector<const tools::ToolSpec*> force_call;
};

/// What a store holds of an unfinished run. `steps` in order, `calls` of all steps, `tail` as it
/// was given to finish_trajectory (empty after a crash); the next step's delta covers it.
struct ResumePoint {
    Uid trajectory;
    std::vector<StepRecord> steps;
    std::vector<ToolCallRecord> calls;
    std::vector<std::pair<Origin, Tokens>> tail;
};

/// One agent over one model timeline. Lifetime: model, tools and recorder must outlive it.
/// Threads: call it, and let it run, on one thread or strand; events come from there too.
class Agent {
  public:
    /// Throws: model::Error when the model's chat format is unknown, does not fit its vocabulary or
    /// has no such thinking.
    Agent(AgentConfig config, LanguageModel& model, tools::Registry& tools, Recorder& recorder,
          EventSink events = {});
    /// A run that was begun and not ended is stored as cancelled.
    ~Agent();
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    /// The whole loop: adds the task as a user message, steps until the end. Never throws after
    /// the run has begun: what goes wrong is the result's status and error.
    boost::asio::awaitable<RunResult> run(std::string task);
    /// The same loop from where a stored run stopped. Calls without a stored result are not run
    /// again: the model is told that they may have had effects.
    boost::asio::awaitable<RunResult> resume(ResumePoint point);

    // The same loop in parts, for harnesses that own the protocol.
    /// Adds a user message to the context. Throws: std::logic_error when the run has ended.
    void say(std::string text);
    struct StepResult {
        Uid step;  ///< of its StepRecord; zero when no model call was made
        FinishReason finish = FinishReason::stop;
        ParsedReply reply;
        /// One for every call and every malformed call, in the order of the reply.
        std::vector<std::pair<tools::ToolCall, tools::ToolResult>> results;
        std::optional<ExitStatus> ended;  ///< set when the run is over
        std::string final_message, error;
    };
    /// One turn: limits, query, execute. Throws what the recorder throws; everything else is in the
    /// result. After a cancellation `ended` is set and nothing more may be awaited.
    boost::asio::awaitable<StepResult> step(TurnOptions options = {});
    /// Takes over a stored run, without continuing it. Requires: nothing was said yet.
    void restore(ResumePoint point);
    /// Stores the end of the run, once; a second call only repeats the result. `run` does it by
    /// itself.
    RunResult finish(ExitStatus status, std::string final_message, std::string error = {});

    const TokenLog& log() const;
    const Usage& usage() const;
    const Uid& trajectory() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace skein::agent
