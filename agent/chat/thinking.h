#pragma once
// Whether a model reasons before it answers, and for how long. PUBLIC.

#include <optional>
#include <string_view>

#include "model/token.h"

namespace skein::agent {

/// `adaptive`: the model decides, which is also what a format does that knows no modes.
enum class ThinkingMode { adaptive, enabled, disabled };
std::string_view to_string(ThinkingMode mode);
/// Nothing for a word that is no mode.
std::optional<ThinkingMode> parse_thinking_mode(std::string_view word);

struct Thinking {
    ThinkingMode mode = ThinkingMode::adaptive;
    int budget_tokens = 0;  ///< of one reply's thinking; then it is closed for the model. 0: no end
};

/// The two control tokens around a thinking part.
struct ThinkingTags {
    model::Token open = -1, close = -1;
};

}  // namespace skein::agent
