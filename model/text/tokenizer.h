#pragma once
// Text to token ids and back, exactly, for byte-level BPE vocabularies. PUBLIC.
//
// Untrusted bytes can only become normal and byte tokens: `encode` never produces a control or
// user-defined token. `encode_with_specials` is for chat formats and tests only.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/text/vocabulary.h"
#include "model/token.h"

namespace skein::model {

/// An encoding with what it cost and what it lost.
struct Encoding {
    Tokens tokens;
    std::size_t dropped_bytes = 0;  ///< bytes for which the vocabulary has no token
    std::uint64_t steps = 0;        ///< characters looked at, heap pushes and pops: linear in bytes
};

class Tokenizer {
  public:
    /// Throws: Error for an unknown pre-tokenizer, a merge of unknown tokens or an id out of range.
    explicit Tokenizer(Vocabulary vocabulary);
    ~Tokenizer();
    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;

    /// Any bytes, valid UTF-8 or not. O(n log n) time, no recursion. Bytes for which the vocabulary
    /// has no token are dropped (SmolLM2 lacks 21 of them), as the original tokenizer does.
    Tokens encode(std::string_view bytes) const;
    Encoding encode_counted(std::string_view bytes) const;
    /// How many bytes `encode` would drop; free for a vocabulary that has all of them.
    std::size_t count_dropped(std::string_view bytes) const;
    /// As `encode`, but literal texts of control and user-defined tokens become those tokens. The
    /// second form knows only tokens of one type.
    Tokens encode_with_specials(std::string_view text) const;
    Tokens encode_with_specials(std::string_view text, TokenType only) const;
    /// Byte lengths of the pre-tokenizer's pieces.
    std::vector<std::size_t> pieces(std::string_view bytes) const;

    /// The exact bytes of the tokens; control tokens give their literal text.
    std::string decode(std::span<const Token> tokens) const;
    /// The same without control tokens.
    std::string decode_visible(std::span<const Token> tokens) const;
    /// The bytes of one token. Requires: 0 <= token < vocab_size().
    std::string_view token_bytes(Token token) const;
    TokenType token_type(Token token) const;
    /// True for control, user-defined, unknown and unused tokens: never produced from untrusted
    /// bytes.
    bool is_special(Token token) const;
    /// The control or user-defined token with exactly this literal text.
    std::optional<Token> find_special(std::string_view text) const;
    int vocab_size() const;
    std::optional<Token> bos() const;
    std::optional<Token> eos() const;
    std::optional<Token> eot() const;
    bool add_bos() const;
    /// A hash of all tables, stored with every run.
    std::uint64_t fingerprint() const;

  private:
    struct Impl;
    std::unique_ptr<const Impl> impl_;
};

/// Streaming decode: holds back at most 3 bytes of an unfinished UTF-8 character.
class Detokenizer {
  public:
    explicit Detokenizer(const Tokenizer& tokenizer);
    /// The longest valid text that is complete after this token; invalid bytes become U+FFFD.
    std::string push(Token token);
    /// What is still held, at the end of a turn; an unfinished character becomes U+FFFD.
    std::string flush();

  private:
    const Tokenizer* tokenizer_;
    std::string pending_;
};

/// Valid UTF-8 with every maximal invalid part replaced by U+FFFD. For screens, never for the log.
std::string to_valid_utf8(std::string_view bytes);

}  // namespace skein::model
