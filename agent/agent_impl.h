#pragma once
// The state of a run and its parts. Private to agent/*.cpp.
//
// The log only grows: [system] (user | reply_opening reply closing results)*. `recorded` is the
// position up to which steps are stored; what lies beyond is the next step's delta, or the tail.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/budget.h"
#include "agent/stuck_detector.h"

namespace skein::agent {

/// One thing of a reply that must be answered, in the order of the reply.
struct Request {
    tools::ToolCall call;  ///< for a malformed call: no name, the raw text as arguments
    std::string refusal;   ///< not empty: answered with this, not run
    bool invalid = false;  ///< refused because of the reply itself
};

/// False for results that say why a call was not carried out.
bool was_run(const tools::ToolResult& result);

struct Agent::Impl {
    Impl(AgentConfig config, LanguageModel& model, tools::Registry& tools, Recorder& recorder,
         EventSink events);

    // agent.cpp: the log and the record
    void begin();
    void open_log();
    void say(const std::string& text);
    void say_from_outside(const std::string& text);  ///< what a replay has to say again
    void append(const std::vector<Segment>& segments);
    void append_reply(const Completion& reply);
    ParsedReply parse(std::span<const Token> reply) const;
    /// Records that bytes had no token and are not in the log.
    void note_dropped(std::string_view where, std::string_view text);
    std::vector<std::pair<Origin, Tokens>> unrecorded() const;
    Spent spent(std::int64_t opening = 0) const;
    std::optional<std::chrono::steady_clock::time_point> deadline() const;
    RunResult finish(ExitStatus status, std::string final_message, std::string error);
    void note(std::string_view kind, boost::json::object facts);
    void emit(const AgentEvent& event) const {
        if (events) events(event);
    }

    // agent_step.cpp: one turn
    struct Query {
        StepRecord record;
        bool late = false;  ///< the run's time ended it
    };
    boost::asio::awaitable<StepResult> step(TurnOptions options);
    boost::asio::awaitable<Query> query(TurnOptions options);
    boost::asio::awaitable<void> answer_reply(const StepRecord& record, StepResult& result);
    boost::asio::awaitable<void> execute(std::vector<Request> requests, StepResult& result);
    boost::asio::awaitable<tools::ToolResult> call_tool(tools::ToolCall call, StepResult& result);
    std::string reason_not_to_run(StepResult& result) const;
    Message answer(const tools::ToolCall& call, const std::string& text,
                   const std::vector<Message>& before, std::size_t after) const;
    void record_call(const Uid& step, int sequence, const tools::ToolCall& call,
                     const tools::ToolResult& result, const Message& shown, std::int64_t began_ms);
    std::vector<Request> requests_of(const ParsedReply& reply, FinishReason finish,
                                     int sequence) const;
    std::string complaint_about(const ParsedReply& reply, FinishReason finish) const;

    // agent_loop.cpp: the loop, and where it starts again
    boost::asio::awaitable<RunResult> loop(std::function<void()> start);
    void restore(ResumePoint point);
    void answer_last_step(const StepRecord& step, const std::vector<ToolCallRecord>& calls);
    bool answered(const ResumePoint& point) const;

    AgentConfig config;
    LanguageModel& model;
    tools::Registry& tools;
    Recorder& recorder;
    EventSink events;
    std::unique_ptr<ChatFormat> format;
    std::vector<Token> stop_tokens;
    std::size_t opening_tokens = 0;

    TokenLog log;
    std::size_t recorded = 0;
    std::vector<std::string> said;  ///< from outside since the last step
    Usage usage;
    Uid trajectory = Uid::make();
    int next_step = 0;
    StuckDetector stuck;
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    bool begun = false;
    std::optional<RunResult> ended;
};

}  // namespace skein::agent
