#include "tools/replacement.h"

#include <doctest/doctest.h>

using skein::tools::replace_text;
using skein::tools::Replacement;

namespace {

std::string edit(std::string_view content, std::string_view from, std::string_view to,
                 bool all = false) {
    const Replacement done = replace_text(content, from, to, all);
    return done.content ? *done.content : "refused: " + done.problem;
}

std::string problem(std::string_view content, std::string_view from, std::string_view to = "new") {
    const Replacement done = replace_text(content, from, to, false);
    CHECK_FALSE(done.content);
    return done.problem;
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_SUITE("tools/replacement") {
    TEST_CASE("a unique text is replaced, nothing else changes") {
        const Replacement done = replace_text("one\ntwo\nthree\n", "two", "2", false);
        REQUIRE(done.content);
        CHECK(*done.content == "one\n2\nthree\n");
        CHECK(done.lines == std::vector<std::size_t>{2});
        CHECK(done.diff == "-two\n+2\n");
    }

    TEST_CASE("F01: multi-line edits of a CRLF file match LF and CRLF texts and stay CRLF") {
        const std::string file = "1\r\n2\r\n3\r\n4\r\n5\r\n";
        const std::string expected = "1\r\nx\r\ny\r\n4\r\n5\r\n";
        CHECK(edit(file, "2\n3", "x\ny") == expected);
        CHECK(edit(file, "2\r\n3", "x\r\ny") == expected);
        CHECK(edit(file, "2\r\n3\r\n", "x\ny\n") == expected);
        CHECK(edit(file, "\n3\n", "\ny\n") == "1\r\n2\r\ny\r\n4\r\n5\r\n");
        CHECK(edit(file, "5", "5\n6") == "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n");
        CHECK(edit("1\n2\n", "1\r\n2", "a\r\nb") == "a\nb\n");
    }

    TEST_CASE("F02: mixed line ends and lone carriage returns outside the edit stay as they are") {
        const std::string file = "lf\ncrlf\r\n10%\r20%\r100%\nword here\r\nlast";
        CHECK(edit(file, "word", "text") == "lf\ncrlf\r\n10%\r20%\r100%\ntext here\r\nlast");
        CHECK(edit(file, "20%", "30%") == "lf\ncrlf\r\n10%\r30%\r100%\nword here\r\nlast");
        CHECK(edit(file, "lf\ncrlf\n", "a\nb\n") == "a\nb\n10%\r20%\r100%\nword here\r\nlast");
        const Replacement done = replace_text(file, "word", "text", false);
        CHECK(done.diff == "-word here\n+text here\n");
    }

    TEST_CASE("F03: dollar, backslash and brace patterns are inserted literally") {
        for (const char* text : {"$&", "$$", "$1", "$`", "\\1", "\\\\1", "\\0", "%s", "{}"}) {
            CAPTURE(text);
            CHECK(edit("a b c", "b", text) == std::string("a ") + text + " c");
            CHECK(edit(std::string("a ") + text + " c", text, "b") == "a b c");
        }
    }

    TEST_CASE("F04: zero, several and empty are refused, several only replaced when asked") {
        const std::string file = "x = 1\ny\nx = 1\nx = 1\n";
        CHECK(contains(problem(file, "x = 1"), "3 times, at lines 1, 3, 4"));
        CHECK(contains(problem(file, ""), "empty"));
        CHECK(contains(problem(file, "absent"), "not in the file"));
        CHECK(contains(problem(file, "y", "y"), "same"));
        CHECK(edit(file, "x = 1", "x", true) == "x\ny\nx\nx\n");
        CHECK(edit("aaaa", "aa", "b", true) == "bb");
        CHECK(contains(problem("aaa", "aa"), "2 times"));
    }

    TEST_CASE(
        "F05: an exact match wins over twins that differ in white space, quotes or line ends") {
        CHECK(edit("let a;\nlet a; \n", "let a; \n", "b\n") == "let a;\nb\n");
        CHECK(edit("say(\u201Chi\u201D)\nsay(\"hi\")\n", "say(\"hi\")", "x") ==
              "say(\u201Chi\u201D)\nx\n");
        CHECK(edit("a\u00A0b\na b\n", "a b", "x") == "a\u00A0b\nx\n");
        CHECK(edit("\tif\n    if\n", "    if", "x") == "\tif\nx\n");
        CHECK(edit("a\r\nb\na\nb\n", "a\nb\n", "x\n") == "a\r\nb\nx\n");
    }

    TEST_CASE("F13: the end of the file keeps its state") {
        struct Case {
            const char *file, *from, *to, *expected;
        };
        const Case cases[] = {
            {"a\nb\n", "b\n", "b\nc\n", "a\nb\nc\n"},
            {"a\nb\n", "b", "x", "a\nx\n"},
            {"a\nb\n", "b", "x\nb", "a\nx\nb\n"},
            {"a\nb", "b", "b\nc", "a\nb\nc"},
            {"a\nb", "b", "x", "a\nx"},
            {"a\nb", "b", "x\nb", "a\nx\nb"},
            {"a\nb\n\n", "b\n", "b\nc\n", "a\nb\nc\n\n"},
            {"a\nb\n\n", "b", "x", "a\nx\n\n"},
            {"a\nb\n\n", "b", "x\nb", "a\nx\nb\n\n"},
        };
        for (const Case& c : cases) {
            CAPTURE(c.file);
            CAPTURE(c.to);
            CHECK(edit(c.file, c.from, c.to) == c.expected);
        }
        CHECK(contains(problem("", "a"), "not in the file"));
    }

    TEST_CASE("F14: a byte-order mark stays once, in front") {
        const std::string mark = "\xEF\xBB\xBF";
        const std::string file = mark + "first\r\nlast\r\n";
        CHECK(edit(file, "first", "1st") == mark + "1st\r\nlast\r\n");
        CHECK(edit(file, mark + "first", mark + "1st") == mark + "1st\r\nlast\r\n");
        CHECK(edit(file, "first\nlast\n", "all\n") == mark + "all\r\n");
        CHECK(edit(file, "last", "end") == mark + "first\r\nend\r\n");
    }

    TEST_CASE("F15: bytes of other encodings are kept") {
        CHECK(edit("caf\xe9\r\nword\r\n", "word", "text") == "caf\xe9\r\ntext\r\n");
        CHECK(edit("\xd6\xd0\xce\xc4 word\n", "word", "text") == "\xd6\xd0\xce\xc4 text\n");
    }

    TEST_CASE("F12: an edit inside a very long line works and its report stays short") {
        std::string file(5 << 20, 'x');
        file.replace(3 << 20, 6, "needle");
        const Replacement done = replace_text(file, "needle", "thread", false);
        REQUIRE(done.content);
        CHECK(done.content->substr(3 << 20, 6) == "thread");
        CHECK(done.diff.size() < 1000);
    }

    TEST_CASE("the report of a miss says what is near") {
        const std::string file = "int main() {\n\treturn 0;\n}\n";
        CHECK(contains(problem(file, "    return 0;"), "Line 2 differs only in white space"));
        CHECK(contains(problem(file, "    return 0;"), R"("\treturn 0;")"));
        CHECK(contains(problem(file, "\treturn 1;"), R"(nearest line is 2: "\treturn 0;")"));
        CHECK(contains(problem(file, "     2\t\treturn 0;"), "leave the numbers"));
        CHECK(contains(problem(file, "int main() {\\n\treturn 0;"), "backslash followed by n"));
        CHECK(contains(problem(file, "int main() {\n\treturn 5;\n}"),
                       "Its line 2 is where it departs: line 2"));
        CHECK(contains(problem(file, "zzzzzzzz"), "No line is like it"));
        CHECK(contains(problem(file, " \n "), "only white space"));
        CHECK(contains(problem("a\r\nb\r\n", "a\n", "a\r\n"), "changes nothing"));
    }

    TEST_CASE("pathological repetition stays linear") {
        const std::string file(1 << 18, 'a');
        CHECK(contains(problem(file, std::string(10000, 'a')), "at least 1000 times"));
        CHECK(contains(problem(file, std::string(10000, 'a') + "b"), "not in the file"));
        CHECK(edit(file, "a", "bb", true).size() == 1 << 19);
    }
}
