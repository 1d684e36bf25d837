#include "model/text/bpe.h"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <random>
#include <string>

#include "model/error.h"
#include "tests/model/text/text_fixtures.h"
#include "tests/support/byte_vocabulary.h"

using namespace skein::model;
using namespace skein::test;

namespace {

/// The definition: look at all pairs, merge the first of lowest rank, start over.
class SlowBpe {
  public:
    explicit SlowBpe(const Vocabulary& v) {
        for (std::size_t i = v.texts.size(); i-- > 0;) {
            if (v.types[i] == TokenType::normal) ids_[v.texts[i]] = static_cast<Token>(i);
        }
        for (std::size_t r = 0; r < v.merges.size(); ++r) ranks_.try_emplace(v.merges[r], r);
    }

    Tokens encode(std::string_view piece) const {
        std::vector<std::string> parts;
        for (const char c : piece) {
            if (ids_.count(std::string(1, c))) parts.emplace_back(1, c);
        }
        for (;;) {
            std::size_t best = std::numeric_limits<std::size_t>::max();
            std::size_t where = 0;
            for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
                const auto found = ranks_.find({parts[i], parts[i + 1]});
                if (found != ranks_.end() && found->second < best) {
                    best = found->second;
                    where = i;
                }
            }
            if (best == std::numeric_limits<std::size_t>::max()) break;
            parts[where] += parts[where + 1];
            parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(where) + 1);
        }
        Tokens out;
        for (const std::string& part : parts) out.push_back(ids_.at(part));
        return out;
    }

  private:
    std::map<std::string, Token> ids_;
    std::map<std::pair<std::string, std::string>, std::size_t> ranks_;
};

Tokens encode(const Bpe& bpe, std::string_view piece) {
    BpeScratch scratch;
    Tokens out;
    bpe.encode(piece, scratch, out);
    return out;
}

/// A vocabulary with long merges: random pairs of existing tokens over a small alphabet.
Vocabulary random_vocabulary(unsigned seed, std::size_t n_merges) {
    std::mt19937 random(seed);
    Vocabulary v = byte_vocabulary();
    std::vector<std::string> parts{"a", "b", "c"};
    std::map<std::string, bool> known;
    while (v.merges.size() < n_merges) {
        const std::string left = parts[random() % parts.size()];
        const std::string right = parts[random() % parts.size()];
        if (left.size() + right.size() > 40 || !known.try_emplace(left + right, true).second)
            continue;
        v.merges.emplace_back(left, right);
        v.texts.push_back(left + right);
        v.types.push_back(TokenType::normal);
        parts.push_back(left + right);
    }
    return v;
}

}  // namespace

TEST_SUITE_BEGIN("model/text/bpe");

TEST_CASE("bpe: the lowest rank merges first, the leftmost of equals") {
    const Vocabulary v = byte_vocabulary();
    const Bpe bpe(v);
    CHECK(encode(bpe, " the") == Tokens{261});
    CHECK(encode(bpe, "thth") == Tokens{259, 259});
    CHECK(encode(bpe, "000") == Tokens{272, '0'});
    CHECK(encode(bpe, "") == Tokens{});
}

TEST_CASE("bpe: equals the quadratic definition on random vocabularies and pieces") {
    for (unsigned seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        const Vocabulary v = random_vocabulary(seed, 60);
        const Bpe bpe(v);
        const SlowBpe slow(v);
        std::mt19937 random(seed);
        for (int i = 0; i < 50; ++i) {
            std::string piece;
            for (std::size_t n = random() % 60; n > 0; --n) piece += "abcd"[random() % 4];
            CAPTURE(piece);
            CHECK(encode(bpe, piece) == slow.encode(piece));
        }
    }
}

TEST_CASE("bpe: long runs equal the definition and cost n log n") {
    const Vocabulary v = random_vocabulary(5, 200);
    const Bpe bpe(v);
    const SlowBpe slow(v);
    for (const char* unit : {"a", "ab", "abc", "aab", "0", " "}) {
        CAPTURE(unit);
        const auto run = [unit](std::size_t n) {
            std::string text;
            while (text.size() < n) text += unit;
            return text;
        };
        CHECK(encode(bpe, run(4096)) == slow.encode(run(4096)));
        std::uint64_t steps[2] = {};
        for (int i = 0; i < 2; ++i) {
            BpeScratch scratch;
            Tokens out;
            bpe.encode(run(std::size_t{1} << (19 + i)), scratch, out);
            steps[i] = scratch.heap_steps;
        }
        // Each merge queues at most two pairs, so the heap sees O(n) entries of O(log n) each.
        CHECK(steps[1] <= 6 * (std::uint64_t{1} << 20));
        CHECK(steps[1] <= steps[0] * 21 / 10 + 64);
    }
}

TEST_CASE("bpe: ignore_merges takes a piece that is a token directly") {
    Vocabulary v = byte_vocabulary();
    v.texts.emplace_back("xyz");  // no merge leads here
    v.types.push_back(TokenType::normal);
    CHECK(encode(Bpe(v), "xyz") == Tokens{'x', 'y', 'z'});
    v.ignore_merges = true;
    CHECK(encode(Bpe(v), "xyz") == Tokens{static_cast<Token>(v.texts.size() - 1)});
}

TEST_CASE("bpe: bytes without a token are dropped before merging") {
    Vocabulary v = byte_vocabulary();
    v.types[0x04] = TokenType::unused;
    CHECK(encode(Bpe(v), "t\x04he") == Tokens{260});
    CHECK(encode(Bpe(v), "\x04") == Tokens{});
}

TEST_CASE("bpe: a merge of tokens that do not exist or are special is refused by rank") {
    Vocabulary v = byte_vocabulary();
    v.merges.emplace_back("q", "w");
    CHECK_THROWS_WITH_AS(Bpe{v}, doctest::Contains("merge 14 ('q' + 'w'): the result 'qw'"), Error);
    v = byte_vocabulary();
    v.merges.emplace_back("<|im_", "end|>");
    CHECK_THROWS_AS(Bpe{v}, Error);
}

TEST_SUITE_END();
