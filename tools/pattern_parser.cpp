#include "tools/pattern_parser.h"

#include <fmt/format.h>

#include <optional>

namespace skein::tools {
namespace {

using State = Pattern::State;
using Kind = Pattern::State::Kind;
using ByteSet = Pattern::ByteSet;

constexpr std::size_t kMaxStates = 20000;
constexpr int kMaxRepeat = 1000;
constexpr int kMaxDepth = 100;

// The expression as a tree; an empty sequence matches the empty text.
struct Node {
    enum class Kind { set, assertion, sequence, choice, repeat } kind = Kind::sequence;
    ByteSet set{};
    State::Kind assertion = State::Kind::match;
    std::vector<Node> parts;
    int least = 0, most = -1;  // repeat; -1: without end
    explicit Node(Kind of_kind) : kind(of_kind) {}
};

class Parser {
  public:
    Parser(std::string_view text, bool ignore_case) : text_(text), ignore_case_(ignore_case) {}

    Node parse() {
        if (text_.size() > kMaxStates) fail(fmt::format("longer than {} bytes", kMaxStates));
        Node node = alternation(0);
        if (at_ < text_.size()) fail("unmatched )");
        return node;
    }

  private:
    [[noreturn]] void fail(const std::string& why) const {
        throw PatternError(fmt::format("pattern: {} at byte {}", why, at_));
    }
    bool done() const { return at_ == text_.size(); }
    char peek() const { return text_[at_]; }
    bool take(char c) {
        if (done() || peek() != c) return false;
        ++at_;
        return true;
    }

    Node alternation(int depth) {
        if (depth > kMaxDepth) fail("parentheses nested too deep");
        Node choice(Node::Kind::choice);
        do {
            choice.parts.push_back(sequence(depth));
        } while (take('|'));
        return choice.parts.size() == 1 ? Node(choice.parts.front()) : choice;
    }

    Node sequence(int depth) {
        Node sequence(Node::Kind::sequence);
        while (!done() && peek() != '|' && peek() != ')') {
            Node part = atom(depth);
            for (int marks = 0; std::optional<Node> repeat = repetition(); ++marks) {
                if (marks == kMaxDepth) fail("too many repetition marks in a row");
                repeat->parts.push_back(std::move(part));
                part = std::move(*repeat);
            }
            sequence.parts.push_back(std::move(part));
        }
        return sequence;
    }

    std::optional<Node> repetition() {
        Node node(Node::Kind::repeat);
        if (take('*')) {
            node.least = 0;
        } else if (take('+')) {
            node.least = 1;
        } else if (take('?')) {
            node.most = 1;
        } else if (!done() && peek() == '{' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
            ++at_;
            node.least = number();
            node.most = node.least;
            if (take(',')) node.most = !done() && is_digit(peek()) ? number() : -1;
            if (!take('}')) fail("expected }");
            if (node.most >= 0 && node.most < node.least) fail("repetition {n,m} with m < n");
        } else {
            return std::nullopt;
        }
        take('?');  // a lazy match finds the same lines
        return node;
    }

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    int number() {
        int value = 0;
        while (!done() && is_digit(peek())) {
            value = value * 10 + (peek() - '0');
            if (value > kMaxRepeat) fail(fmt::format("repetition beyond {}", kMaxRepeat));
            ++at_;
        }
        return value;
    }

    Node atom(int depth) {
        const char c = text_[at_];
        if (c == '*' || c == '+' || c == '?') fail(fmt::format("nothing to repeat before {}", c));
        ++at_;
        switch (c) {
            case '(':
                return group(depth);
            case '[':
                return bracket();
            case '.':
                return any_character();
            case '^':
                return assertion(Kind::line_start);
            case '$':
                return assertion(Kind::line_end);
            case '\\':
                return escape();
            default:
                break;
        }
        // A repetition after a multi-byte character repeats the character, not its last byte.
        Node character(Node::Kind::sequence);
        character.parts.push_back(byte(c));
        if (static_cast<unsigned char>(c) >= 0xC0) {
            while (!done() && (static_cast<unsigned char>(peek()) & 0xC0) == 0x80) {
                character.parts.push_back(byte(text_[at_++]));
            }
        }
        return character;
    }

    Node group(int depth) {
        if (take('?') && !take(':')) fail("look-around and named groups are not supported: (?");
        Node inside = alternation(depth + 1);
        if (!take(')')) fail("missing )");
        return inside;
    }

    static Node assertion(Kind kind) {
        Node node(Node::Kind::assertion);
        node.assertion = kind;
        return node;
    }

    Node of_set(ByteSet set) const {
        if (ignore_case_) {
            for (std::size_t c = 'a'; c <= 'z'; ++c) {
                const std::size_t upper = c - 'a' + 'A';
                set[c] = set[upper] = set[c] || set[upper];
            }
        }
        Node node(Node::Kind::set);
        node.set = set;
        return node;
    }

    Node byte(char c) const {
        ByteSet set{};
        set[static_cast<unsigned char>(c)] = true;
        return of_set(set);
    }

    // One byte that starts a character and the continuation bytes that follow it.
    static Node character_from(ByteSet first) {
        Node lead(Node::Kind::set), rest(Node::Kind::set);
        Node repeat(Node::Kind::repeat), both(Node::Kind::sequence);
        lead.set = first;
        for (std::size_t c = 0x80; c <= 0xBF; ++c) rest.set[c] = true;
        repeat.parts.push_back(std::move(rest));
        both.parts.push_back(std::move(lead));
        both.parts.push_back(std::move(repeat));
        return both;
    }

    static Node any_character() {
        ByteSet first;
        first.fill(true);
        for (std::size_t c = 0x80; c <= 0xBF; ++c) first[c] = false;
        return character_from(first);
    }

    // Adds the class of \d, \w or \s (capital: its complement); false for other letters.
    static bool add_class(char letter, ByteSet& set) {
        const char lower = static_cast<char>(letter | 0x20);
        if (lower != 'd' && lower != 'w' && lower != 's') return false;
        for (std::size_t c = 0; c < 256; ++c) {
            const bool digit = c >= '0' && c <= '9';
            const bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            const bool space = c == ' ' || (c >= '\t' && c <= '\r');
            const bool in = lower == 'd'   ? digit
                            : lower == 'w' ? digit || alpha || c == '_'
                                           : space;
            if (in == (letter == lower)) set[c] = true;
        }
        return true;
    }

    // The byte of a \x escape whose letter is already taken, or nothing.
    std::optional<char> escaped_byte(char letter) {
        switch (letter) {
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'f':
                return '\f';
            case 'v':
                return '\v';
            case 'x': {
                const auto digits = text_.substr(at_, 2);
                if (digits.size() < 2 ||
                    digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) {
                    fail("\\x needs two hexadecimal digits");
                }
                at_ += 2;
                return static_cast<char>(std::stoi(std::string(digits), nullptr, 16));
            }
            default:
                break;
        }
        const bool alphanumeric = is_digit(letter) || (letter >= 'a' && letter <= 'z') ||
                                  (letter >= 'A' && letter <= 'Z');
        return alphanumeric ? std::nullopt : std::optional<char>(letter);
    }

    Node escape() {
        if (done()) fail("a lone \\ at the end");
        const char letter = text_[at_++];
        if (letter == 'b') return assertion(Kind::word_edge);
        if (letter == 'B') return assertion(Kind::no_word_edge);
        if (letter == 'n') fail("\\n never matches, patterns see one line at a time");
        ByteSet set{};
        if (add_class(letter, set)) {
            // \D, \W and \S take whole characters, like the dot.
            if (letter >= 'a') return of_set(set);
            for (std::size_t c = 0x80; c <= 0xBF; ++c) set[c] = false;
            return character_from(set);
        }
        if (is_digit(letter)) fail("back references are not supported");
        if (const std::optional<char> c = escaped_byte(letter)) return byte(*c);
        fail(fmt::format("unknown escape \\{}", letter));
    }

    Node bracket() {
        const bool negated = take('^');
        ByteSet set{};
        bool first = true;
        while (first || done() || peek() != ']') {
            if (done()) fail("missing ]");
            first = false;
            if (named_class(set)) continue;
            const char letter = text_[at_];
            if (letter == '\\' && at_ + 1 < text_.size() && add_class(text_[at_ + 1], set)) {
                at_ += 2;
                continue;
            }
            const auto low = static_cast<unsigned char>(bracket_byte());
            unsigned char high = low;
            if (at_ + 1 < text_.size() && peek() == '-' && text_[at_ + 1] != ']') {
                ++at_;
                high = static_cast<unsigned char>(bracket_byte());
                if (high < low) fail("range out of order in []");
            }
            for (std::size_t c = low; c <= high; ++c) set[c] = true;
        }
        ++at_;
        Node node = of_set(set);
        if (!negated) return node;
        ByteSet inverse{};
        for (std::size_t c = 0; c < 256; ++c) inverse[c] = !node.set[c] && (c < 0x80 || c > 0xBF);
        return character_from(inverse);
    }

    bool named_class(ByteSet& set) {
        struct Named {
            std::string_view name, ranges;  // pairs of bounds
        };
        static constexpr Named kNamed[] = {
            {"[:alpha:]", "azAZ"},     {"[:digit:]", "09"},      {"[:alnum:]", "azAZ09"},
            {"[:upper:]", "AZ"},       {"[:lower:]", "az"},      {"[:space:]", "\t\r  "},
            {"[:punct:]", "!/:@[`{~"}, {"[:xdigit:]", "09afAF"}, {"[:blank:]", "  \t\t"}};
        for (const Named& named : kNamed) {
            if (text_.substr(at_, named.name.size()) != named.name) continue;
            for (std::size_t i = 0; i < named.ranges.size(); i += 2) {
                for (char c = named.ranges[i]; c <= named.ranges[i + 1]; ++c) {
                    set[static_cast<unsigned char>(c)] = true;
                }
            }
            at_ += named.name.size();
            return true;
        }
        return false;
    }

    char bracket_byte() {
        if (done()) fail("missing ]");
        const char c = text_[at_++];
        if (static_cast<unsigned char>(c) >= 0x80)
            fail("only ASCII inside []; write (a|b) instead");
        if (c != '\\') return c;
        if (done()) fail("missing ]");
        const char letter = text_[at_++];
        if (letter == 'n') return '\n';
        if (const std::optional<char> escaped = escaped_byte(letter)) return *escaped;
        fail(fmt::format("unknown escape \\{} inside []", letter));
    }

    std::string_view text_;
    bool ignore_case_;
    std::size_t at_ = 0;
};

// Builds states backwards: every piece is made knowing the state that follows it.
class Builder {
  public:
    PatternProgram build(const Node& node) {
        const std::uint32_t match = add({Kind::match, 0, 0, 0});
        program_.start = emit(node, match);
        return std::move(program_);
    }

  private:
    std::uint32_t add(State state) {
        if (program_.states.size() == kMaxStates) {
            throw PatternError(fmt::format("pattern: needs more than {} states", kMaxStates));
        }
        program_.states.push_back(state);
        return static_cast<std::uint32_t>(program_.states.size() - 1);
    }

    std::uint32_t emit(const Node& node, std::uint32_t next) {
        // Nested repetitions of nothing make no states, but the work still multiplies.
        if (++work_ > 10 * kMaxStates)
            throw PatternError("pattern: too large once repetitions are written out");
        switch (node.kind) {
            case Node::Kind::set:
                program_.sets.push_back(node.set);
                return add(
                    {Kind::bytes, next, 0, static_cast<std::uint32_t>(program_.sets.size() - 1)});
            case Node::Kind::assertion:
                return add({node.assertion, next, 0, 0});
            case Node::Kind::sequence:
                for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) {
                    next = emit(*part, next);
                }
                return next;
            case Node::Kind::choice: {
                std::uint32_t first = emit(node.parts.back(), next);
                for (std::size_t i = node.parts.size() - 1; i-- > 0;) {
                    const std::uint32_t branch = emit(node.parts[i], next);
                    first = add({Kind::split, branch, first, 0});
                }
                return first;
            }
            case Node::Kind::repeat:
                return emit_repeat(node, next);
        }
        return next;
    }

    std::uint32_t emit_repeat(const Node& node, std::uint32_t next) {
        const Node& part = node.parts.front();
        if (node.most < 0) {
            const std::uint32_t loop = add({Kind::split, 0, next, 0});
            const std::uint32_t body = emit(part, loop);
            program_.states[loop].next = body;
            next = loop;
        } else {
            const std::uint32_t after = next;
            for (int i = node.least; i < node.most; ++i) {
                const std::uint32_t body = emit(part, next);
                next = add({Kind::split, body, after, 0});
            }
        }
        for (int i = 0; i < node.least; ++i) next = emit(part, next);
        return next;
    }

    PatternProgram program_;
    std::size_t work_ = 0;
};

}  // namespace

PatternProgram parse_pattern(std::string_view expression, bool ignore_case) {
    Parser parser(expression, ignore_case);
    const Node tree = parser.parse();
    return Builder().build(tree);
}

}  // namespace skein::tools
