#pragma once
// What a file states about its byte-level BPE tokenizer, before any check, and the checks that turn
// it into a Vocabulary. GGUF metadata and tokenizer.json fill the same struct.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/text/vocabulary.h"

namespace skein::model {

struct StatedTokenId {
    std::string key;
    std::optional<std::uint64_t> value;
};

/// Texts and merges are in the byte alphabet. Lifetime: the views point into the file.
struct StatedVocabulary {
    std::string where;
    std::string pre_tokenizer;
    std::vector<std::string_view> tokens;
    std::vector<std::uint64_t> types;  ///< empty means all normal
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    bool ignore_merges = false;
    bool add_bos = false;
    StatedTokenId bos, eos, eot, unknown, padding;
};

/// Special ids equal to 2^32 - 1 are how writers spell "none" and stay unset; other ids outside the
/// vocabulary are refused.
/// Throws: Error naming the table, the entry and what is wrong with it.
Vocabulary check_vocabulary(const StatedVocabulary& stated);

}  // namespace skein::model
