#pragma once
// The text of a pattern to an automaton. Internal to Pattern.

#include "tools/pattern.h"

namespace skein::tools {

struct PatternProgram {
    std::vector<Pattern::State> states;
    std::vector<Pattern::ByteSet> sets;
    std::uint32_t start = 0;
};

/// Throws: PatternError.
PatternProgram parse_pattern(std::string_view expression, bool ignore_case);

}  // namespace skein::tools
