#pragma once
// The ChatML family: `<|im_start|>role\n content <|im_end|>\n`.
//
//   message := <|im_start|> "system\n" text [tools] <|im_end|> "\n"
//            | <|im_start|> role "\n" content <|im_end|> "\n"
//   results := one message of role `tool` each (SmolLM2), or one user message holding a
//              "<tool_response>\n" content "\n</tool_response>" each (Qwen)
//
// Control tokens go in by id; role lines, content and closings are tokenised separately as plain
// text. Tags such as <tool_call> use their id where the vocabulary has one, but only in what the
// format itself writes. Calls and thinking are read by agent/chat/call_parser.h.

#include "agent/chat/chat_format.h"

namespace skein::agent {

/// How a member of the family differs from the others.
struct ChatMLStyle {
    std::string_view name;
    std::string_view default_system = {};
    bool wrap_results = false;    ///< results as <tool_response> in a user message
    bool thinks = false;          ///< replies may have a <think> part
    bool opens_thinking = false;  ///< the prompt ends with "<think>\n"
};

class ChatML final : public ChatFormat {
  public:
    /// Throws: model::Error when the vocabulary lacks <|im_start|> or <|im_end|>.
    ChatML(const ChatMLStyle& style, const model::Tokenizer& tokenizer);

    std::string_view name() const override { return style_.name; }
    std::string_view default_system() const override { return style_.default_system; }
    std::vector<Segment> render_system(
        std::string_view text, std::span<const tools::ToolSpec* const> tools,
        ThinkingMode mode) const override;
    bool supports(ThinkingMode mode) const override;
    std::optional<ThinkingTags> thinking_tags() const override;
    bool opens_thinking(ThinkingMode) const override { return style_.opens_thinking; }
    std::string_view call_syntax() const override;
    std::vector<Segment> render(const Message& message) const override;
    std::vector<Segment> render_results(std::span<const Message> results) const override;
    std::vector<Segment> open_reply(ThinkingMode mode) const override;
    std::vector<Segment> close_reply(std::span<const Token> reply) const override;
    std::vector<Token> stop_tokens() const override;
    ParsedReply parse(std::span<const Token> reply, const ReplyContext& context) const override;
    std::shared_ptr<const model::Grammar> call_grammar(
        std::span<const tools::ToolSpec* const> tools, ThinkingMode mode) const override;

  private:
    void begin_message(std::vector<Segment>& out, std::string_view role) const;
    void end_message(std::vector<Segment>& out) const;
    void add_content(std::vector<Segment>& out, Origin origin, const Message& message) const;
    /// Text of the format itself, with ids for the tags that have one.
    Tokens scaffold(std::string_view text) const;

    ChatMLStyle style_;
    const model::Tokenizer* tokenizer_;
    Token start_ = 0, end_ = 0;
};

}  // namespace skein::agent
