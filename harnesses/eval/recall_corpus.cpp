#include "harnesses/eval/recall_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "agent/store/codec.h"
#include "harnesses/exit_code.h"
#include "model/hash.h"

namespace skein::harnesses {
namespace {

using model::Token;

/// Fixed words and where the alphabets begin, as token ids.
constexpr Token kNewline = 10, kSet = 309, kGet = 310, kLog = 312, kEquals = 313;
constexpr int kVocabSize = 960;
constexpr std::uint64_t kRecordPercent = 63;

constexpr std::string_view kVowels = "aeio";
constexpr std::string_view kFinals = "dklmnprt";

/// Words of one kind: every initial with every vowel and final, in this order.
struct Alphabet {
    std::string_view initials;
    Token first;
    std::uint64_t size() const { return initials.size() * kVowels.size() * kFinals.size(); }
    Token token(std::uint64_t word) const { return first + static_cast<Token>(word); }
};

constexpr Alphabet kA{"bcdf", 314}, kB{"ghjk", 442}, kC{"lmnp", 570};
constexpr Alphabet kX{"rst", 698}, kY{"vwx", 794}, kFiller{"yz", 890};

class SplitMix64 {
  public:
    explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
    std::uint64_t below(std::uint64_t n) { return model::next_random(state_) % n; }

  private:
    std::uint64_t state_;
};

/// The log while it is written. The order of the draws is part of the format.
class LogWriter {
  public:
    LogWriter(int n_tokens, std::uint64_t seed)
        : random_(seed), size_(static_cast<std::size_t>(n_tokens)) {
        tokens_.reserve(size_);
        while (tokens_.size() < size_) {
            const bool record = random_.below(100) < kRecordPercent;
            if (record && left() >= kQuestionTokens)
                add_record();
            else
                add_filler();
        }
    }

    SplitMix64& random() { return random_; }
    const std::vector<std::size_t>& records() const { return records_; }
    model::Tokens& tokens() { return tokens_; }

  private:
    std::size_t left() const { return size_ - tokens_.size(); }

    void add_record() {
        std::uint64_t a = 0, b = 0, c = 0;
        do {
            a = random_.below(kA.size());
            b = random_.below(kB.size());
            c = random_.below(kC.size());
        } while (!taken_.insert((a * kB.size() + b) * kC.size() + c).second);
        const Token x = kX.token(random_.below(kX.size()));
        const Token y = kY.token(random_.below(kY.size()));
        records_.push_back(tokens_.size());
        tokens_.insert(tokens_.end(),
                       {kSet, kA.token(a), kB.token(b), kC.token(c), kEquals, x, y, kNewline});
    }

    void add_filler() {
        const std::size_t n = std::min<std::size_t>(left(), 3 + random_.below(22));
        if (n > 1) tokens_.push_back(kLog);
        for (std::size_t i = 2; i < n; ++i)
            tokens_.push_back(kFiller.token(random_.below(kFiller.size())));
        tokens_.push_back(kNewline);
    }

    SplitMix64 random_;
    std::size_t size_;
    model::Tokens tokens_;
    std::vector<std::size_t> records_;
    std::unordered_set<std::uint64_t> taken_;
};

/// Which records are asked for: the first, the last and evenly between, then shuffled.
std::vector<std::size_t> asked_records(std::size_t n_records, std::size_t n_questions,
                                       SplitMix64& random) {
    std::vector<std::size_t> asked(n_questions);
    for (std::size_t i = 0; i < n_questions; ++i)
        asked[i] = i * (n_records - 1) / std::max<std::size_t>(1, n_questions - 1);
    for (std::size_t i = n_questions; i > 1; --i) std::swap(asked[i - 1], asked[random.below(i)]);
    return asked;
}

void expect_text(const model::Tokenizer& tokenizer, Token token, const std::string& text) {
    const std::string_view got = tokenizer.token_bytes(token);
    if (got != text)
        throw UsageError(fmt::format(
            "this model was not trained for the recall task: its token {} is '{}', expected '{}'",
            token, model::to_valid_utf8(got), text));
}

}  // namespace

model::Tokens RecallCorpus::all_tokens() const {
    model::Tokens all = context;
    for (const RecallQuestion& question : questions) {
        all.insert(all.end(), question.prompt.begin(), question.prompt.end());
        all.insert(all.end(), question.answer.begin(), question.answer.end());
        all.push_back(kNewline);
    }
    return all;
}

std::string RecallCorpus::digest() const {
    std::string bytes;
    const model::Tokens all = all_tokens();
    bytes.reserve(all.size() * 4);
    for (const Token token : all)
        for (unsigned shift = 0; shift < 32; shift += 8)
            bytes.push_back(static_cast<char>(static_cast<std::uint32_t>(token) >> shift & 0xFFU));
    return agent::store::to_hex(agent::store::sha256(bytes));
}

RecallCorpus make_recall_corpus(int total_tokens, int n_questions, std::uint64_t seed) {
    const int least = 64;
    if (n_questions < 1 || total_tokens > kMostRecallTokens ||
        n_questions > (total_tokens - least) / kQuestionTokens)
        throw UsageError(
            fmt::format("recall: {} tokens with {} questions; expected at least one question, {} "
                        "tokens before the questions (8 tokens each) and at most {} in all",
                        total_tokens, n_questions, least, kMostRecallTokens));
    LogWriter log(total_tokens - kQuestionTokens * n_questions, seed);
    if (log.records().empty())
        throw UsageError(fmt::format("recall: seed {} makes no record in {} tokens; ask for more",
                                     seed, total_tokens));
    RecallCorpus corpus;
    corpus.n_records = static_cast<int>(log.records().size());
    for (const std::size_t i :
         asked_records(log.records().size(), static_cast<std::size_t>(n_questions), log.random())) {
        const std::size_t at = log.records()[i];
        RecallQuestion question;
        question.record = static_cast<int>(at);
        const Token* record = log.tokens().data() + at;
        question.prompt = {kGet, record[1], record[2], record[3], kEquals};
        question.answer = {record[5], record[6]};
        corpus.questions.push_back(question);
    }
    corpus.context = std::move(log.tokens());
    return corpus;
}

void check_recall_vocabulary(const model::Tokenizer& tokenizer) {
    if (tokenizer.vocab_size() != kVocabSize)
        throw UsageError(
            fmt::format("this model was not trained for the recall task: its vocabulary has {} "
                        "tokens, expected {}",
                        tokenizer.vocab_size(), kVocabSize));
    const std::pair<Token, const char*> words[] = {
        {kNewline, "\n"}, {kSet, "SET"}, {kGet, "GET"}, {kLog, "LOG"}, {kEquals, " ="}};
    for (const auto& [token, text] : words) expect_text(tokenizer, token, text);
    for (const Alphabet& alphabet : {kA, kB, kC, kX, kY, kFiller}) {
        Token token = alphabet.first;
        for (const char initial : alphabet.initials)
            for (const char vowel : kVowels)
                for (const char last : kFinals)
                    expect_text(tokenizer, token++, std::string{' ', initial, vowel, last});
    }
}

}  // namespace skein::harnesses
