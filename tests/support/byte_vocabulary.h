#pragma once
// A vocabulary that fits in a page: every byte, the chatml control tokens, and a few merges, so
// that tests of conversations and grammars need no model file.

#include <array>
#include <string>
#include <utility>

#include "model/text/vocabulary.h"

namespace skein::test {

inline constexpr model::Token kEndOfText = 256;  ///< <|endoftext|>
inline constexpr model::Token kImStart = 257;    ///< <|im_start|>
inline constexpr model::Token kImEnd = 258;      ///< <|im_end|>

/// Ids 0..255 are the bytes, then three control tokens, then the results of the merges.
inline model::Vocabulary byte_vocabulary() {
    model::Vocabulary v;
    v.pre_tokenizer = "gpt2";
    const auto add = [&v](std::string text, model::TokenType type) {
        v.texts.push_back(std::move(text));
        v.types.push_back(type);
    };
    for (int b = 0; b < 256; ++b)
        add(std::string(1, static_cast<char>(b)), model::TokenType::normal);
    for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
        add(text, model::TokenType::control);
    }
    const std::array<std::pair<const char*, const char*>, 14> merges{{
        {"t", "h"},
        {"th", "e"},
        {" ", "the"},
        {"i", "n"},
        {"e", "r"},
        {"a", "n"},
        {" ", " "},
        {"{", "\""},
        {"\"", ":"},
        {"\"", ","},
        {"\"", "}"},
        {"\":", "\""},
        {"\"}", "}"},
        {"0", "0"},
    }};
    for (const auto& [left, right] : merges) {
        v.merges.emplace_back(left, right);
        add(std::string(left) + right, model::TokenType::normal);
    }
    v.bos = kImStart;
    v.eos = kImEnd;
    v.eot = kImEnd;
    v.padding = kEndOfText;
    return v;
}

}  // namespace skein::test
