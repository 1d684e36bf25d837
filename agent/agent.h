#pragma once
// The loop: limits, query, execute, append; until a final answer or a limit. PUBLIC.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/chat/chat_format.h"
#include "agent/event.h"
#include "agent/limits.h"
#include "agent/llm/language_model.h"
#include "agent/record.h"
#include "tools/registry.h"

namespace skein::agent {

struct AgentConfig {
    std::string name = "root";
    std::string instruction;  ///< system text
    RunLimits limits;
    model::SamplingParams sampling;
    std::string task_id;
    std::optional<Uid> parent;
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

/// One agent over one model timeline. Lifetime: model, tools and recorder must outlive it.
class Agent {
  public:
    Agent(AgentConfig config, LanguageModel& model, tools::Registry& tools, Recorder& recorder,
          EventSink events = {});
    ~Agent();

    /// The whole loop: adds the task as a user message, steps until the end.
    boost::asio::awaitable<RunResult> run(std::string task);

    // The same loop in parts, for harnesses that own the protocol (kernel_opt's `moves` proposer).
    /// Adds a user message to the context.
    void say(std::string text);
    struct StepResult {
        ParsedReply reply;
        std::vector<std::pair<tools::ToolCall, tools::ToolResult>> results;
        std::optional<ExitStatus> ended;  ///< set when the run is over
    };
    boost::asio::awaitable<StepResult> step(TurnOptions options = {});
    /// Stores the end of the run. `run` does it by itself.
    RunResult finish(ExitStatus status, std::string final_message);

    const TokenLog& log() const;
    const Usage& usage() const;
    const Uid& trajectory() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace skein::agent
