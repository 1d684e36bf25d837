#pragma once
// Cuts a tool's output to a budget of the model's own tokens, once, before it enters the log.
// The head and the tail stay (a failed build says why at its end); a notice between them says how
// much is missing and where the whole output lies.

#include <string>
#include <string_view>

#include "agent/context/token_log.h"
#include "model/text/tokenizer.h"

namespace skein::agent {

struct ToolOutput {
    Tokens tokens;      ///< what enters the log, at most the budget
    std::string shown;  ///< the same as bytes
    int total_tokens = 0;
    int left_out_tokens = 0;  ///< 0: nothing was cut
};

/// `max_tokens` <= 0 means no budget. `reference` names the full copy in the notice. The result
/// uses the whole budget except for a character that would be split (at most 3 tokens) and one
/// digit of the notice; a budget too small for the notice holds the beginning of the notice.
ToolOutput cut_tool_output(std::string_view text, int max_tokens, std::string_view reference,
                           const model::Tokenizer& tokenizer);

}  // namespace skein::agent
