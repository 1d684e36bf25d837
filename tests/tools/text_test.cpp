#include "tools/text.h"

#include <doctest/doctest.h>

using namespace skein::tools;

TEST_SUITE("tools/text") {
    TEST_CASE("well-formed UTF-8 is told from the rest") {
        CHECK(is_utf8("plain, é, 語, 😀"));
        for (const char* bad :
             {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe8\xaa", "\x80"}) {
            CHECK_FALSE(is_utf8(bad));
        }
    }

    TEST_CASE("cuts fall between characters") {
        CHECK(utf8_prefix("aé", 2) == "a");
        CHECK(utf8_prefix("aé", 3) == "aé");
        CHECK(utf8_suffix("éa", 2) == "a");
        CHECK(utf8_suffix("語語", 4) == "語");
        CHECK(utf8_prefix("\x80\x80\x80\x80\x80\x80", 5).size() == 5);
    }

    TEST_CASE("odd names are shown in a form that can be typed") {
        CHECK(shown_name("plain name.txt") == "plain name.txt");
        CHECK(shown_name("Ωж.txt") == "Ωж.txt");
        CHECK(shown_name("a\nb\x1b") == R"("a\nb\u001b")");
        CHECK(shown_name("3\u202FPM.png") == R"("3\u202fPM.png")");
        CHECK(shown_name("e\u0301") == R"("e\u0301")");
        CHECK(shown_name("end ") == R"("end ")");
        CHECK(shown_name("bad\xff'x") == R"($'bad\xff\x27x')");
    }

    TEST_CASE("quoted text stays on one line and within its bound") {
        CHECK(quote("a\"b\t\xff") == R"("a\"b\t\xff")");
        CHECK(quote(std::string(100, 'x'), 10) == "\"xxxxxxxxxx...\"");
    }

    TEST_CASE("the distance counts edits and stops at its limit") {
        CHECK(edit_distance("", "", 3) == 0);
        CHECK(edit_distance("kitten", "sitting", 5) == 3);
        CHECK(edit_distance("abc", "xyz", 1) == 2);
        CHECK(edit_distance("", "abcdef", 2) == 3);
    }

    TEST_CASE("a suggestion is near or none") {
        CHECK(nearest("raed_file", {"bash", "read_file"}) == "read_file");
        CHECK(nearest("file_path", {"content", "path"}) == "path");
        CHECK(nearest("zzz", {"bash", "read_file"}) == "");
        CHECK(nearest("x", {}) == "");
    }
}
