#pragma once
// MiniMax-M3: `]~b]role\n content [e~[\n`, reasoning kept in every turn, calls as elements.
//
//   opening   := ]~!b[ ]~b] "system\n" identity thinking-rules [e~[ "\n"
//                ]~b] "developer\n" text [tools] [e~[ "\n"
//   message   := ]~b] ("user" | "developer") "\n" content [e~[ "\n"
//              | ]~b] "ai\n" (<mm:think> reasoning)? </mm:think> content calls [e~[ "\n"
//   results   := ]~b] "tool" ("\n<response>" content "</response>")+ [e~[ "\n"
//   ]~b] "ai\n" opens a reply; <mm:think> follows when thinking is enabled, </mm:think> when it is
//   disabled, nothing when the model decides.
//
// The document start is part of the format, so nobody else adds a BOS. Calls are written as in
// agent/chat/element_parser.h with the namespace token ]<]minimax[>[ in front of every tag. Tokens
// of the format go in by id, content as plain text. The thinking state of a reply follows from the
// mode alone: the rules in the prompt name both tags, so a scan of the prompt would mislead.
// Source: the chat template of the released MiniMax-M3 checkpoint.

#include "agent/chat/chat_format.h"

namespace skein::agent {

class MiniMaxM3 final : public ChatFormat {
  public:
    /// Throws: model::Error naming a control token that the vocabulary lacks.
    explicit MiniMaxM3(const model::Tokenizer& tokenizer);

    std::string_view name() const override { return "minimax-m3"; }
    std::string_view default_system() const override { return "You are a helpful assistant."; }
    bool supports(ThinkingMode) const override { return true; }
    std::optional<ThinkingTags> thinking_tags() const override { return think_; }
    bool opens_thinking(ThinkingMode mode) const override {
        return mode == ThinkingMode::enabled;
    }
    std::string_view call_syntax() const override;
    std::vector<Segment> render_system(std::string_view text,
                                       std::span<const tools::ToolSpec* const> tools,
                                       ThinkingMode mode) const override;
    std::vector<Segment> render(const Message& message) const override;
    std::vector<Segment> render_results(std::span<const Message> results) const override;
    std::vector<Segment> open_reply(ThinkingMode mode) const override;
    std::vector<Segment> close_reply(std::span<const Token> reply) const override;
    std::vector<Token> stop_tokens() const override;
    ParsedReply parse(std::span<const Token> reply, const ReplyContext& context) const override;
    std::shared_ptr<const model::Grammar> call_grammar(
        std::span<const tools::ToolSpec* const> tools, ThinkingMode mode) const override;

  private:
    void begin_turn(std::vector<Segment>& out, std::string_view role) const;
    void end_turn(std::vector<Segment>& out) const;
    void add_content(std::vector<Segment>& out, Origin origin, const Message& message) const;
    void add_call(Tokens& out, const tools::ToolCall& call) const;
    /// Text of the format itself; every literal text of a control token becomes that token.
    Tokens scaffold(std::string_view text) const;

    const model::Tokenizer* tokenizer_;
    Token document_ = 0, start_ = 0, end_ = 0, tag_ = 0;
    ThinkingTags think_;
};

}  // namespace skein::agent
