#pragma once
// A grammar seen through a vocabulary: which tokens may come next, and which one must. PUBLIC.
//
// The allowed tokens of a state are found by walking the vocabulary's byte trie together with the
// automaton, so a state that allows few bytes costs a few hundred steps. Inside a JSON string
// almost every token is allowed; those made of plain characters only are kept apart, ordered by
// length, so that they cost nothing to check. Source of the trie walk: llguidance (guidance-ai),
// "fast token masking" notes, 2024.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/sampling/grammar.h"
#include "model/sampling/sampler.h"
#include "model/text/byte_trie.h"
#include "model/text/tokenizer.h"
#include "model/token.h"

namespace skein::model {

/// A vocabulary's normal and byte tokens in the two forms the mask needs. Immutable; made once for
/// a tokenizer (tens of milliseconds) and shared by all decoders. Lifetime: the tokenizer outlives
/// it.
class TokenIndex {
  public:
    explicit TokenIndex(const Tokenizer& tokenizer);

    const Tokenizer& tokenizer() const { return *tokenizer_; }
    const ByteTrie& all() const { return all_; }
    /// Tokens that are not plain: they hold a quote, a backslash, a control or part of a character.
    const ByteTrie& special_bytes() const { return special_bytes_; }
    /// Tokens of at most `n` whole plain characters, ascending by characters, then by id.
    std::span<const Token> plain_up_to(int n) const;
    /// Characters of a plain token; 0 for every other token.
    int plain_characters(Token token) const {
        return plain_characters_[static_cast<std::size_t>(token)];
    }

  private:
    const Tokenizer* tokenizer_;
    ByteTrie all_, special_bytes_;
    std::vector<Token> plain_;
    std::vector<std::size_t> plain_ends_;  ///< [n]: how many plain tokens have at most n characters
    std::vector<int> plain_characters_;
};

/// Follows one constrained reply. Usage: while not done(): take the `forced()` tokens or draw one
/// of `allowed()` (`sample_among`), and `advance` over each.
class ConstrainedDecoder {
  public:
    ConstrainedDecoder(std::shared_ptr<const TokenIndex> index,
                       std::shared_ptr<const Grammar> grammar);
    /// Builds an index of its own; for a single use.
    ConstrainedDecoder(const Tokenizer& tokenizer, std::shared_ptr<const Grammar> grammar);

    /// The tokens that may come next, ascending. When the text is complete but could go on, the
    /// end-of-turn tokens (eot, eos) are among them. Empty only when dead_end().
    /// Lifetime: until the next advance. Throws: Error when the vocabulary has no token for any
    /// legal continuation.
    std::span<const Token> allowed();
    bool allows(Token token);
    /// `allows` as a function for `sample`. Lifetime: the decoder outlives it.
    TokenFilter filter();
    /// The tokens to take without asking the model, at most 512 and often none: how the tokenizer
    /// writes the bytes that must come, without a last token that the text after them could have
    /// joined to a longer one; and the control tokens that must come.
    Tokens forced() const;
    /// Moves over an allowed token. Throws: Error, and nothing changes, for any other token.
    void advance(Token token);

    bool complete() const;  ///< the text so far is a whole sentence
    bool dead_end() const;  ///< nothing more may follow: decoding stops here
    bool done() const { return ended_ || (complete() && dead_end()); }

  private:
    bool is_end(Token token) const;
    void walk(const ByteTrie& trie);
    bool move(GrammarState& state, Token token) const;
    void compute();

    std::shared_ptr<const TokenIndex> index_;
    GrammarState state_;
    bool ended_ = false;  ///< an end-of-turn token was taken
    bool fresh_ = false;  ///< allowed_ and mask_ are of the current state
    std::vector<Token> allowed_;
    std::vector<std::uint8_t> mask_;  ///< 1 for an allowed token
};

}  // namespace skein::model
