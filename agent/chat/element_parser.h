#pragma once
// A reply of a model whose calls are elements: thinking, text and calls taken apart.
//
//   reply    := (thinking | block | text)*
//   thinking := OPEN anything CLOSE              the opening may have been part of the prompt
//   block    := TAG "<tool_call>" call* TAG "</tool_call>"          white space between the parts
//   call     := TAG "<invoke name=\"" name "\">" member* TAG "</invoke>"
//   member   := TAG "<" key ">" value TAG "</" key ">"
//   value    := text | member* | (TAG "<item>" value TAG "</item>")*
//
// OPEN, CLOSE and TAG are control tokens, known by id, so the same characters as text are text.
// What a text stands for is read from the tool's schema: a string is its text, byte for byte; one
// of the listed values is the first that is written like this; anything else is the JSON value of
// its text, or the text as a string, which the schema then refuses. Inside a string the tags nest,
// so a document about calls stays a string.
//
// Rules for what is not regular: CLOSE without OPEN is dropped (models emit it in front of an
// answer they did not think about); a call inside thinking is not a call; a block that ends with
// the reply is whole; stray closing tags are dropped; a call outside of a block, and a call that is
// not exactly as above, are reported as malformed. Nothing is repaired.
// Source: the chat template of MiniMax-M3.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/chat/chat_format.h"

namespace skein::agent {

enum class Mark { tag, think_open, think_close };

/// A reply as bytes with its control tokens kept apart.
struct MarkedText {
    struct At {
        std::size_t at = 0;  ///< the mark stands in front of this byte
        Mark mark = Mark::tag;
    };
    std::string bytes;
    std::vector<At> marks;  ///< ascending
};

/// What the marks look like where they turn out to be text.
std::string_view spelling(Mark mark);

/// `opened_thinking`: the prompt already ended inside a thinking part.
ParsedReply parse_element_reply(const MarkedText& reply, bool opened_thinking,
                                std::span<const tools::ToolSpec* const> tools);

}  // namespace skein::agent
