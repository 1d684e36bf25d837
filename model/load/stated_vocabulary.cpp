#include "model/load/stated_vocabulary.h"

#include <fmt/format.h>

#include <unordered_set>

#include "model/error.h"
#include "model/load/byte_alphabet.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

constexpr std::size_t kMaxTokens = 1U << 26;
constexpr std::size_t kMaxTokenBytes = 1U << 16;
constexpr std::uint64_t kNoToken = 0xFFFFFFFFU;

class Checker {
  public:
    explicit Checker(const StatedVocabulary& stated) : stated_(stated) {}

    Vocabulary check() {
        vocabulary_.pre_tokenizer = stated_.pre_tokenizer;
        vocabulary_.ignore_merges = stated_.ignore_merges;
        vocabulary_.add_bos = stated_.add_bos;
        read_tokens();
        read_merges();
        vocabulary_.bos = special(stated_.bos);
        vocabulary_.eos = special(stated_.eos);
        vocabulary_.eot = special(stated_.eot);
        vocabulary_.unknown = special(stated_.unknown);
        vocabulary_.padding = special(stated_.padding);
        return std::move(vocabulary_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: tokenizer: {}", stated_.where, message));
    }

    void read_tokens() {
        const std::size_t n = stated_.tokens.size();
        if (n == 0) fail("it has no tokens");
        if (n > kMaxTokens) fail(fmt::format("{} tokens, limit {}", n, kMaxTokens));
        if (!stated_.types.empty() && stated_.types.size() != n) {
            fail(fmt::format("{} token types for {} tokens", stated_.types.size(), n));
        }
        vocabulary_.texts.reserve(n);
        vocabulary_.types.reserve(n);
        for (std::size_t i = 0; i < n; ++i) read_token(i);
    }

    void read_token(std::size_t id) {
        const std::string_view text = stated_.tokens[id];
        const std::uint64_t type = stated_.types.empty() ? 1 : stated_.types[id];
        if (type < 1 || type > 6) {
            fail(fmt::format("token {} has type {}, expected 1 to 6", id, type));
        }
        if (text.size() > kMaxTokenBytes) {
            fail(fmt::format("token {} has {} bytes, limit {}", id, text.size(), kMaxTokenBytes));
        }
        vocabulary_.types.push_back(static_cast<TokenType>(type));
        std::optional<std::string> bytes;
        if (vocabulary_.types.back() == TokenType::normal ||
            vocabulary_.types.back() == TokenType::byte) {
            bytes = undo_byte_alphabet(text);
        }
        // A normal token outside the alphabet can never be produced by merging bytes; its text is
        // kept as it is so that decoding it shows what the file says.
        vocabulary_.texts.push_back(bytes ? std::move(*bytes) : std::string(text));
    }

    void read_merges() {
        const std::unordered_set<std::string_view> known(stated_.tokens.begin(),
                                                         stated_.tokens.end());
        vocabulary_.merges.reserve(stated_.merges.size());
        std::string joined;
        for (std::size_t i = 0; i < stated_.merges.size(); ++i) {
            const auto& [left, right] = stated_.merges[i];
            if (left.empty() || right.empty()) fail(fmt::format("merge {} has an empty part", i));
            joined.assign(left).append(right);
            for (const std::string_view part : {left, right, std::string_view(joined)}) {
                if (known.contains(part)) continue;
                fail(fmt::format("merge {} ('{}' + '{}'): '{}' is not a token", i, printable(left),
                                 printable(right), printable(part)));
            }
            std::optional<std::string> left_bytes = undo_byte_alphabet(left);
            std::optional<std::string> right_bytes = undo_byte_alphabet(right);
            if (!left_bytes || !right_bytes) {
                fail(
                    fmt::format("merge {} ('{}' + '{}') holds a character outside the byte "
                                "alphabet",
                                i, printable(left), printable(right)));
            }
            vocabulary_.merges.emplace_back(std::move(*left_bytes), std::move(*right_bytes));
        }
    }

    std::optional<Token> special(const StatedTokenId& id) const {
        if (!id.value || *id.value == kNoToken) return std::nullopt;
        if (*id.value >= stated_.tokens.size()) {
            fail(fmt::format("'{}' is {}, the vocabulary has {} tokens", id.key, *id.value,
                             stated_.tokens.size()));
        }
        return static_cast<Token>(*id.value);
    }

    const StatedVocabulary& stated_;
    Vocabulary vocabulary_;
};

}  // namespace

Vocabulary check_vocabulary(const StatedVocabulary& stated) {
    return Checker(stated).check();
}

}  // namespace skein::model
