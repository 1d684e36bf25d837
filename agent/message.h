#pragma once
// Messages as plain data. PUBLIC.

#include <string>
#include <string_view>
#include <vector>

#include "model/token.h"
#include "tools/tool.h"

namespace skein::agent {

enum class Role { system, user, assistant, tool };
std::string_view to_string(Role role);

/// `text` is raw bytes. `calls` only for the assistant; `call_id`, `name` only for tool messages.
/// `thinking` is the assistant's reasoning, for formats that keep it in the history.
/// `tokens`, when not empty, is the text already cut to a budget and tokenised; formats take it as
/// it is instead of tokenising `text`.
struct Message {
    Role role = Role::user;
    std::string text;
    std::vector<tools::ToolCall> calls;
    std::string call_id, name;
    model::Tokens tokens;
    std::string thinking{};
};

}  // namespace skein::agent
