#pragma once
// Regular expressions that cannot blow up: matching time is linear in the text, and no recursion
// depends on it (std::regex recurses once a character and crashes on long lines). PUBLIC.
//
//   alternation := sequence ("|" sequence)*
//   sequence    := (atom ("*" | "+" | "?" | "{n}" | "{n,}" | "{n,m}")?)*    a following "?" is
//   ignored atom        := "." | "^" | "$" | "(" alternation ")" | "(?:" alternation ")" | "["
//   class "]"
//                | \d \D \w \W \s \S \b \B \t \r \f \v \xHH | "\" punctuation | any other character
//
// Patterns see one line without its line end. "." is one UTF-8 character; letter classes and
// ignore_case know ASCII. Refused with a message: back references, look-around, named groups,
// non-ASCII inside [], repetition beyond 1000, automata beyond 20'000 states.
// Method: Thompson 1968, as a set simulation whose sets are cached (a lazily built DFA).

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

/// The pattern cannot be used; the message has the position.
class PatternError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Pattern {
  public:
    /// Throws: PatternError.
    explicit Pattern(std::string_view expression, bool ignore_case = false);
    /// Matches exactly this text.
    static Pattern literal(std::string_view text, bool ignore_case = false);

    static constexpr std::size_t npos = std::string_view::npos;
    /// Where the match that ends first ends within the line, or npos. Not thread-safe (cache).
    std::size_t find_end(std::string_view line);
    bool matches(std::string_view line) { return find_end(line) != npos; }

    struct State {
        enum class Kind : std::uint8_t {
            bytes,
            split,
            line_start,
            line_end,
            word_edge,
            no_word_edge,
            match
        };
        Kind kind = Kind::match;
        std::uint32_t next = 0, other = 0;  ///< `other` for split
        std::uint32_t set = 0;              ///< for bytes: index of the accepted set
    };
    using ByteSet = std::array<bool, 256>;

  private:
    // What stood before the present position, as far as assertions can tell.
    enum class Before : std::uint8_t { start, word, other };
    struct CachedSet {
        std::vector<std::uint32_t> states;  // before assertions are resolved; sorted
        Before before = Before::start;
        // By next byte, 256 for the end of the line: next set, or one of the two below.
        std::array<std::int32_t, 257> next;
    };
    static constexpr std::int32_t kUnknown = -1, kMatch = -2;

    Pattern() = default;
    std::int32_t add_set(std::vector<std::uint32_t> states, Before before);
    std::int32_t advance(std::int32_t from, int byte);

    std::vector<State> states_;
    std::vector<ByteSet> sets_;
    std::uint32_t start_ = 0;
    std::vector<std::unique_ptr<CachedSet>> cache_;
    std::map<std::pair<std::vector<std::uint32_t>, Before>, std::int32_t> index_;
};

/// `text` with everything that has a meaning in a pattern escaped.
std::string escape_pattern(std::string_view text);

}  // namespace skein::tools
