#pragma once
// The corpus of the recall task: a long log of records and filler, then questions about records.
//
//   corpus    = statement* question*
//   statement = "SET" a b c " =" x y "\n" | "LOG" word* "\n"
//   question  = "GET" a b c " =" x y "\n"
//
// Every word is one token of the vocabulary that the recall model was trained with: 256 bytes, the
// parts of words, then 640 words in six alphabets (a, b, c of 128, x, y of 96, filler of 64). A log
// is a pure function of its length, the number of questions and a seed; every draw is one
// SplitMix64 value modulo the range, so that other programs make the same log.

#include <array>
#include <cstdint>
#include <vector>

#include "model/text/tokenizer.h"
#include "model/token.h"

namespace skein::harnesses {

struct RecallQuestion {
    std::array<model::Token, 5> prompt{};  ///< GET a b c =
    std::array<model::Token, 2> answer{};  ///< x y
    int record = 0;                        ///< position of the record's SET
    /// Position of the record's x and y: what the token before must find.
    int value_position(int i) const { return record + 5 + i; }
};

struct RecallCorpus {
    model::Tokens context;
    std::vector<RecallQuestion> questions;  ///< spread evenly over the log, in shuffled order
    int n_records = 0;

    /// The context and all questions with their answers: what a digest is made of.
    model::Tokens all_tokens() const;
    /// SHA-256 of all_tokens as little-endian 32-bit integers, hexadecimal.
    std::string digest() const;
};

/// A question and its answer, the newline included.
inline constexpr int kQuestionTokens = 8;
/// The longest corpus: beyond it the keys, which are unique, would run out.
inline constexpr int kMostRecallTokens = 1 << 24;

/// A corpus of exactly `total_tokens`, questions included. About half of the log is records.
/// Throws: UsageError when the log would be too short to hold a record, or too long.
RecallCorpus make_recall_corpus(int total_tokens, int n_questions, std::uint64_t seed);

/// Throws: UsageError naming the first token that is not the one this task was written with.
void check_recall_vocabulary(const model::Tokenizer& tokenizer);

}  // namespace skein::harnesses
