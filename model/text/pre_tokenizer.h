#pragma once
// Cuts a text into the pieces inside which BPE may merge: the published regular expressions of
// each tokenizer family, written as linear scanners.
//
// No regex engine and no recursion, because tool output holds runs of megabytes of one class. Each
// scanner looks at a character a constant number of times. Input may be any bytes: an invalid
// byte is one unit of class `other`.
//
// Families (`\s` is White_Space, contractions are 's 't 're 've 'm 'll 'd):
//   gpt2       contraction | ?\p{L}+ | ?\p{N}+ | ?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
//   smollm     first every \p{N} alone, then gpt2 on the parts between
//   qwen2      (?i:contraction) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} | ?[^\s\p{L}\p{N}]+[\r\n]* |
//              \s*[\r\n]+ | \s+(?!\S) | \s+
//   llama-bpe  as qwen2 with \p{N}{1,3}
//   o200k      [^\r\n\p{L}\p{N}]?U*L+(?i:contraction)? | [^\r\n\p{L}\p{N}]?U+L*(?i:contraction)? |
//              \p{N}{1,3} | ?[^\s\p{L}\p{N}]+[\r\n/]* | the three of qwen2,
//              where U = Lu Lt Lm Lo M and L = Ll Lm Lo M
//   minimax-m2 as o200k without `/` in the tail of punctuation

#include <cstddef>
#include <string_view>

#include "model/text/unicode.h"

namespace skein::model {

class PreTokenizer {
  public:
    /// Throws: Error that lists the known names when `name` is not one of them.
    explicit PreTokenizer(std::string_view name);

    /// Calls `on_piece(std::string_view)` for each piece in order; together they are `text`.
    /// Returns how many characters were looked at: the measure of work, linear in `text`.
    template <class F>
    std::size_t split(std::string_view text, F&& on_piece) const {
        Reader reader(text);
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = end_of_piece(reader, begin);
            on_piece(text.substr(begin, end - begin));
            begin = end;
        }
        return reader.looks;
    }

  private:
    struct Unit {
        CharClass kind;
        std::size_t length;
    };

    struct Reader {
        explicit Reader(std::string_view bytes) : text(bytes) {}
        Unit at(std::size_t position);

        std::string_view text;
        std::size_t looks = 0;
        const CharClassTable& classes = CharClassTable::instance();
    };

    enum class Family { gpt2, qwen2, o200k };

    /// A run of units, with the start of its last one.
    struct Run {
        std::size_t end, last;
    };

    template <class Predicate>
    static Run run(Reader& reader, std::size_t begin, Predicate&& belongs);
    static std::size_t contraction(const Reader& reader, std::size_t at, bool ignore_case);
    std::size_t end_of_piece(Reader& reader, std::size_t begin) const;
    std::size_t gpt2_piece(Reader& reader, std::size_t begin) const;
    std::size_t qwen2_piece(Reader& reader, std::size_t begin) const;
    std::size_t o200k_word(Reader& reader, std::size_t begin) const;
    std::size_t digits(Reader& reader, std::size_t begin) const;
    std::size_t punctuation_or_space(Reader& reader, std::size_t begin) const;
    std::size_t space(Reader& reader, std::size_t begin, bool newlines_first) const;

    Family family_ = Family::gpt2;
    bool digits_apart_ = false;   ///< smollm's first pass
    bool slash_in_tail_ = false;  ///< [\r\n/]* and not [\r\n]* after punctuation
    int max_digits_ = 3;
};

}  // namespace skein::model
