#pragma once
// Byte-pair merges inside one piece: always the pair of lowest rank, the leftmost of equals.
//
// A heap of (rank, position) over a linked list of symbols: O(n log n) for a piece of n bytes, so a
// megabyte of one letter is as legal as a word. Bytes without a token are dropped before merging.
// Source: Sennrich et al. 2016, in the byte-level form of Radford et al. 2019.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/text/vocabulary.h"
#include "model/token.h"

namespace skein::model {

/// Buffers that calls share, and what the calls cost.
struct BpeScratch {
    struct Symbol {
        Token token;
        std::uint32_t previous, next;  ///< positions; kNone at the ends
        std::uint32_t rank;  ///< of the pair with the next symbol; kNone if it never merges
    };
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> heap;  ///< rank << 32 | position
    std::uint64_t heap_steps = 0;     ///< pushes and pops so far, the measure of work
    std::uint64_t dropped_bytes = 0;  ///< bytes without a token so far
};

class Bpe {
  public:
    /// Lifetime: `vocabulary` must outlive the object. Only normal and byte tokens take part.
    /// Throws: Error for a merge whose parts or result are no such tokens.
    explicit Bpe(const Vocabulary& vocabulary);

    /// Appends the tokens of one piece. Throws: Error for a piece of 4 GiB or more.
    void encode(std::string_view piece, BpeScratch& scratch, Tokens& out) const;

  private:
    /// Pair of tokens to rank and result, open addressing.
    class MergeTable {
      public:
        struct Merge {
            std::uint64_t pair;  ///< left << 32 | right, kFree if unused
            std::uint32_t rank;
            Token result;
        };
        void reserve(std::size_t n_merges);
        /// Keeps the first of equal pairs.
        void insert(Merge merge);
        const Merge* find(Token left, Token right) const;

      private:
        std::size_t slot_of(std::uint64_t pair) const;
        std::vector<Merge> slots_;
    };

    void merge_all(std::string_view piece, BpeScratch& scratch, Tokens& out) const;
    void offer(BpeScratch& scratch, std::uint32_t position) const;

    bool ignore_merges_;
    std::vector<Token> token_of_byte_;  ///< -1: none
    std::unordered_map<std::string_view, Token> token_of_text_;
    std::vector<bool> whole_;  ///< by token: merging its own bytes gives just this token
    MergeTable merges_;
};

}  // namespace skein::model
