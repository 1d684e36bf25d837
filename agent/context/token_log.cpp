#include "agent/context/token_log.h"

namespace skein::agent {

std::string_view to_string(Origin origin) {
    switch (origin) {
        case Origin::system: return "system";
        case Origin::user: return "user";
        case Origin::tool: return "tool";
        case Origin::sampled: return "sampled";
        case Origin::forced: return "forced";
        case Origin::glue: return "glue";
    }
    return "unknown";
}

void TokenLog::append(Origin origin, std::span<const Token> tokens) {
    if (tokens.empty()) return;
    const std::size_t begin = tokens_.size();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    segments_.push_back({origin, begin, tokens_.size()});
}

}  // namespace skein::agent
