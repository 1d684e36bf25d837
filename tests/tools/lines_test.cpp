#include "tools/lines.h"

#include <doctest/doctest.h>

using namespace skein::tools;

TEST_SUITE("tools/lines") {
    TEST_CASE("no line stands behind the last line end") {
        CHECK(count_lines("") == 0);
        CHECK(count_lines("a") == 1);
        CHECK(count_lines("a\n") == 1);
        CHECK(count_lines("a\n\n") == 2);
        CHECK(split_lines("a\nb\n").size() == 2);
        CHECK(split_lines("a\nb").back() == "b");
        CHECK(split_lines("a\nb\nc", 2).size() == 2);
    }

    TEST_CASE("CRLF ends a line, a lone CR is data") {
        const auto lines = split_lines("a\r\nb\rc\n\r");
        REQUIRE(lines.size() == 3);
        CHECK(lines[0] == "a");
        CHECK(lines[1] == "b\rc");
        CHECK(lines[2] == "\r");
        const LineEnds ends = count_line_ends("a\r\nb\nc");
        CHECK(ends.crlf == 1);
        CHECK(ends.lf == 1);
        CHECK_FALSE(ends.final_newline);
    }

    TEST_CASE("notes say what a reader cannot see") {
        CHECK(describe_text("a\n") == "");
        CHECK(describe_text("\xEF\xBB\xBF"
                            "a\r\n") == "CRLF line ends, byte-order mark");
        CHECK(describe_text("a\r\nb\n\xff") ==
              "mixed line ends: 1 CRLF, 1 LF, not UTF-8, no newline at the end");
        CHECK(is_binary(std::string_view("a\0b", 3)));
        CHECK(line_number("a\nb\nc", 4) == 3);
        CHECK(counted(1, "line") == "1 line");
        CHECK(counted(2, "match") == "2 matches");
    }
}
