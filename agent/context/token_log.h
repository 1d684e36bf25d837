#pragma once
// The append-only ids of one timeline, with segment boundaries and origins. PUBLIC.
// The log is the truth; text is a view of it. Nothing is ever re-rendered or re-tokenised.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/token.h"

namespace skein::agent {

using model::Token;
using model::Tokens;

/// Who put the tokens there. `glue` is what the chat format inserts (role lines, control tokens);
/// `forced` are tokens of a reply that a grammar left no choice about.
enum class Origin : std::uint8_t { system, user, tool, sampled, forced, glue };
std::string_view to_string(Origin origin);

struct SegmentSpan {
    Origin origin = Origin::glue;
    std::size_t begin = 0, end = 0;  ///< positions in the log
};

class TokenLog {
  public:
    void append(Origin origin, std::span<const Token> tokens);
    std::span<const Token> tokens() const { return tokens_; }
    const std::vector<SegmentSpan>& segments() const { return segments_; }
    std::size_t size() const { return tokens_.size(); }

  private:
    Tokens tokens_;
    std::vector<SegmentSpan> segments_;
};

}  // namespace skein::agent
