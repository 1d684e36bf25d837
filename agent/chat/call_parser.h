#pragma once
// The bytes of a reply taken apart: thinking, text and Hermes-style tool calls.
//
//   reply    := (thinking | call | text)*
//   thinking := "<think>" bytes "</think>"        the opening may have been part of the prompt
//   call     := "<tool_call>" ws object ws "</tool_call>"
//   object   := JSON object with "name" (string) and "arguments"; other members are ignored
//
// A call ends where its JSON ends, so tags inside its strings are text. Rules for what is not
// regular: a call inside thinking is not a call; a lone "</think>" makes everything before it
// thinking; a lone "</tool_call>" is dropped; a call that is not exactly as above, and a reply that
// is nothing but a bare call object, are reported as malformed. Nothing is repaired.
// Source: the Hermes function-calling format as used by the Qwen2.5 and Qwen3 chat templates.

#include <string_view>

#include "agent/chat/chat_format.h"

namespace skein::agent {

/// Any bytes. `opened_thinking`: the prompt already ended inside a thinking part.
ParsedReply parse_hermes_reply(std::string_view bytes, bool opened_thinking);

/// Printable form of raw bytes for messages: valid UTF-8 stays, other bytes become \xNN.
std::string escape_bytes(std::string_view bytes);

}  // namespace skein::agent
