#pragma once
// A tokenizer's tables as plain data, read from a file or written by hand in a test.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/token.h"

namespace skein::model {

/// Values as in GGUF `tokenizer.ggml.token_type`.
enum class TokenType : std::uint8_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
};

/// Byte-level BPE tables. Token texts are the *raw bytes* the token stands for (the GPT-2 byte
/// alphabet is already undone) except for control and user-defined tokens, whose text is literal.
struct Vocabulary {
    std::string pre_tokenizer;  ///< "smollm", "gpt2", "qwen2", "llama-bpe", "o200k" ...
    std::vector<std::string> texts;
    std::vector<TokenType> types;
    /// Merge pairs by rank: the bytes of the left and of the right part.
    std::vector<std::pair<std::string, std::string>> merges;
    bool ignore_merges = false;  ///< a piece that is a whole token is taken directly
    bool add_bos = false;
    std::optional<Token> bos, eos, eot, unknown, padding;
};

}  // namespace skein::model
