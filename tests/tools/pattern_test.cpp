#include "tools/pattern.h"

#include <doctest/doctest.h>

#include <random>
#include <regex>

using skein::tools::Pattern;
using skein::tools::PatternError;

namespace {

bool finds(std::string_view pattern, std::string_view line, bool ignore_case = false) {
    return Pattern(pattern, ignore_case).matches(line);
}

}  // namespace

TEST_SUITE("tools/pattern") {
    TEST_CASE("literals, classes, repetition and alternatives match as documented") {
        CHECK(finds("b", "abc"));
        CHECK_FALSE(finds("d", "abc"));
        CHECK(finds("", ""));
        CHECK(finds("a.c", "xabcx"));
        CHECK(finds("ab*c", "ac"));
        CHECK_FALSE(finds("ab+c", "ac"));
        CHECK(finds("ab?c", "abc"));
        CHECK(finds("^(foo|bar)$", "bar"));
        CHECK_FALSE(finds("^(foo|bar)$", "barx"));
        CHECK(finds("^a{2,3}$", "aaa"));
        CHECK_FALSE(finds("^a{2,3}$", "aaaa"));
        CHECK(finds("^a{2,}$", "aaaaa"));
        CHECK(finds("x{,2}", "x{,2}"));
        CHECK(finds("a{b}", "a{b}"));
        CHECK(finds("[a-c]+[^a-c]", "abcd"));
        CHECK(finds("[]a]", "]"));
        CHECK(finds("[a-]", "-"));
        CHECK(finds("[[:digit:]]x", "7x"));
        CHECK(finds("\\d\\D\\w\\W\\s\\S", "1a_- x"));
        CHECK(finds("a\\.b\\x41", "a.bA"));
        CHECK(finds("(?:ab)+?c", "ababc"));
        CHECK(finds("(a*)*b", "aaab"));
        CHECK(finds("|x", "anything"));
    }

    TEST_CASE("edges of words and lines") {
        CHECK(finds("\\bint\\b", "an int x"));
        CHECK_FALSE(finds("\\bint\\b", "print"));
        CHECK(finds("\\Bint\\b", "print"));
        CHECK(finds("^$", ""));
        CHECK_FALSE(finds("^$", " "));
        CHECK(finds("x$|^y", "yes"));
        CHECK(finds("\\b", "a"));
        CHECK_FALSE(finds("\\b", " "));
    }

    TEST_CASE("a dot and a negated class are one UTF-8 character, case is folded for ASCII") {
        CHECK(finds("^.$", "語"));
        CHECK(finds("^..$", "éa"));
        CHECK_FALSE(finds("^..$", "語"));
        CHECK(finds("^[^a]$", "語"));
        CHECK(finds("^é+$", "éé"));
        CHECK(finds("HeLLo", "hello", true));
        CHECK(finds("[A-C]x", "bX", true));
        CHECK(finds("x.y", "x\xffy"));
    }

    TEST_CASE("find_end is where the first match to end ends") {
        CHECK(Pattern("b+").find_end("aabbb") == 3);
        CHECK(Pattern("z").find_end("aabbb") == Pattern::npos);
        CHECK(Pattern::literal("a.b*").find_end("xa.b*y") == 5);
    }

    TEST_CASE("what is not supported is refused with its position") {
        for (const char* bad :
             {"(", ")", "a)", "[", "[a", "[z-a]", "*a", "a|+", "\\1", "\\q", "\\n", "(?=a)",
              "(?<n>a)", "a{2,1}", "a{1001}", "a{2", "\\", "[é]", "\\x4"}) {
            CAPTURE(bad);
            CHECK_THROWS_AS(Pattern{bad}, PatternError);
        }
        CHECK_THROWS_WITH(Pattern("ab(?=c)"),
                          "pattern: look-around and named groups are not supported: (? at byte 4");
    }

    TEST_CASE("patterns that would explode are refused, not built") {
        CHECK_THROWS_AS(Pattern("((a{1000}){1000}){1000}"), PatternError);
        CHECK_THROWS_AS(Pattern("((){1000}){1000}"), PatternError);
        CHECK_THROWS_AS(Pattern(std::string(30000, 'a')), PatternError);
        CHECK_THROWS_AS(Pattern(std::string(1000, '(') + std::string(1000, ')')), PatternError);
        CHECK_THROWS_AS(Pattern(std::string("a").append(5000, '*')), PatternError);
    }

    TEST_CASE("time is linear where backtracking is exponential, and long lines do not recurse") {
        const std::string line(3 << 20, 'a');
        CHECK_FALSE(finds("(a|a)*(a|aa)*b", line));
        CHECK_FALSE(finds("(x+x+)+y", std::string(100000, 'x')));
        CHECK_FALSE(finds("a.{300}b", std::string(20000, 'a')));  // many cached sets
    }

    TEST_CASE("agrees with std::regex on random small patterns") {
        std::mt19937 random(7);
        CAPTURE("seed 7");
        const std::string atoms[] = {"a",    "b",   ".", "[ab]", "[^a]", "(a|b)",
                                     "(ab)", "\\w", "^", "$",    "c"};
        const std::string marks[] = {"", "", "", "*", "+", "?", "{2}", "{1,2}"};
        for (int round = 0; round < 2000; ++round) {
            std::string pattern;
            for (unsigned i = 0; i < 1 + random() % 4; ++i) {
                const std::string& atom = atoms[random() % std::size(atoms)];
                const std::string& mark = marks[random() % std::size(marks)];
                pattern.append(atom);
                if (atom != "^" && atom != "$") pattern.append(mark);
                if (random() % 6 == 0) pattern.push_back('|');
            }
            if (pattern.back() == '|') pattern.push_back('c');
            const std::regex expected(pattern);
            Pattern ours(pattern);
            for (int k = 0; k < 5; ++k) {
                std::string line;
                for (unsigned i = 0; i < random() % 6; ++i) line.push_back("abc "[random() % 4]);
                CAPTURE(pattern);
                CAPTURE(line);
                CHECK(ours.matches(line) == std::regex_search(line, expected));
            }
        }
    }
}
