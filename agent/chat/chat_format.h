#pragma once
// Messages to token segments, sampled tokens to messages. One implementation a format. PUBLIC.
// Only a chat format inserts control tokens, and it does so by id.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/chat/thinking.h"
#include "agent/context/token_log.h"
#include "agent/message.h"
#include "model/sampling/grammar.h"
#include "model/text/tokenizer.h"
#include "tools/tool.h"

namespace skein::agent {

struct Segment {
    Origin origin = Origin::glue;
    Tokens tokens;
};

/// A reply taken apart. A call that cannot be parsed is in `malformed`, never repaired.
struct ParsedReply {
    std::string text;      ///< what the assistant says, without thinking and calls
    std::string thinking;  ///< reasoning part; calls drafted inside are not calls
    std::vector<tools::ToolCall> calls;  ///< ids are empty; the agent gives them
    struct Malformed {
        std::string raw, error;
        std::size_t calls_before = 0;  ///< how many valid calls came before it in the reply
    };
    std::vector<Malformed> malformed;
    bool unclosed_thinking = false;
};

/// What a reply is read against. The thinking mode is the one its prompt was opened with.
struct ReplyContext {
    std::span<const tools::ToolSpec* const> tools = {};
    ThinkingMode thinking = ThinkingMode::adaptive;
};

class ChatFormat {
  public:
    virtual ~ChatFormat() = default;
    virtual std::string_view name() const = 0;
    /// The opening of a conversation: system text with the tools described in the format's own way.
    virtual std::vector<Segment> render_system(
        std::string_view text, std::span<const tools::ToolSpec* const> tools,
        ThinkingMode mode = ThinkingMode::adaptive) const = 0;
    /// The system text a model of this format expects when the user gives none.
    virtual std::string_view default_system() const { return {}; }
    virtual bool supports(ThinkingMode mode) const = 0;
    /// Nothing when the format has no thinking part or the vocabulary no tokens for its tags.
    virtual std::optional<ThinkingTags> thinking_tags() const { return {}; }
    /// True when the prompt of a reply ends inside its thinking part.
    virtual bool opens_thinking(ThinkingMode) const { return false; }
    /// How a call is written, for a model that wrote one that cannot be read.
    virtual std::string_view call_syntax() const = 0;
    /// One message. An assistant's message is history that was not sampled here: Origin::forced.
    virtual std::vector<Segment> render(const Message& message) const = 0;
    /// All results of one turn, in call order.
    virtual std::vector<Segment> render_results(std::span<const Message> results) const = 0;
    /// What comes before the model speaks.
    virtual std::vector<Segment> open_reply(
        ThinkingMode mode = ThinkingMode::adaptive) const = 0;
    /// What closes the model's turn when it did not emit its own end (e.g. the length limit).
    virtual std::vector<Segment> close_reply(std::span<const Token> reply) const = 0;
    virtual std::vector<Token> stop_tokens() const = 0;
    virtual ParsedReply parse(std::span<const Token> reply,
                              const ReplyContext& context = {}) const = 0;
    /// The reply as a grammar: exactly one call of one of these tools, arguments by schema, after
    /// the thinking that the mode allows.
    virtual std::shared_ptr<const model::Grammar> call_grammar(
        std::span<const tools::ToolSpec* const> tools,
        ThinkingMode mode = ThinkingMode::adaptive) const = 0;
};

/// "chatml" (SmolLM2), "qwen2", "qwen3", "qwen3-thinking", "minimax-m3".
/// Throws: model::Error listing the known formats, or naming a control token the vocabulary lacks.
/// Lifetime: `tokenizer` must outlive the format.
std::unique_ptr<ChatFormat> make_chat_format(std::string_view name,
                                             const model::Tokenizer& tokenizer);
/// The name of the format a model's chat template describes, by its distinctive markers; nothing
/// for an unknown template. The text is only searched, never executed.
std::optional<std::string> recognise_chat_template(std::string_view template_text);

}  // namespace skein::agent
