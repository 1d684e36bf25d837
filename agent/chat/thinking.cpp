#include "agent/chat/thinking.h"

namespace skein::agent {

std::string_view to_string(ThinkingMode mode) {
    switch (mode) {
        case ThinkingMode::adaptive: return "adaptive";
        case ThinkingMode::enabled: return "enabled";
        case ThinkingMode::disabled: return "disabled";
    }
    return "unknown";
}

std::optional<ThinkingMode> parse_thinking_mode(std::string_view word) {
    for (const ThinkingMode mode :
         {ThinkingMode::adaptive, ThinkingMode::enabled, ThinkingMode::disabled}) {
        if (to_string(mode) == word) return mode;
    }
    return std::nullopt;
}

}  // namespace skein::agent
