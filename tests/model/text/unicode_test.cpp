#include "model/text/unicode.h"

#include <doctest/doctest.h>

#include <string>

using namespace skein::model;

TEST_SUITE_BEGIN("model/text/unicode");

TEST_CASE("unicode: every scalar value is read back as it was appended") {
    std::size_t wrong = 0;
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
        if (c == 0xD800) c = 0xE000;
        std::string text;
        append_utf8(text, c);
        const Utf8Step step = utf8_step(text, 0);
        wrong += !step.valid || step.code_point != c || step.length != text.size();
    }
    CHECK(wrong == 0);
}

TEST_CASE("unicode: an invalid step covers the maximal subpart and knows whether the end cut it") {
    struct Case {
        const char* bytes;
        unsigned length;
        bool truncated;
    };
    for (const Case& c :
         {Case{"\x80", 1, false}, Case{"\xFF", 1, false}, Case{"\xC3", 1, true},
          Case{"\xC0\xAF", 1, false}, Case{"\xE4\xB8", 2, true}, Case{"\xE4\xB8 ", 2, false},
          Case{"\xF0\x9F\x98", 3, true}, Case{"\xED\xA0\x80", 1, false}, Case{"\xF5\x80", 1, false},
          Case{"\xF4\x90\x80\x80", 1, false}, Case{"\xE0\x80", 1, false}}) {
        CAPTURE(c.bytes);
        const Utf8Step step = utf8_step(c.bytes, 0);
        CHECK_FALSE(step.valid);
        CHECK(step.length == c.length);
        CHECK(step.truncated == c.truncated);
    }
}

TEST_CASE("unicode: classes follow the general category, spaces the White_Space property") {
    const CharClassTable& table = CharClassTable::instance();
    CHECK(table.of(U'A') == CharClass::upper);
    CHECK(table.of(0x01C5) == CharClass::upper);  // titlecase digraph
    CHECK(table.of(0x00E9) == CharClass::lower);
    CHECK(table.of(0x4E2D) == CharClass::letter);
    CHECK(table.of(0x02B0) == CharClass::letter);  // modifier letter
    CHECK(table.of(0x0301) == CharClass::mark);
    CHECK(table.of(0x093F) == CharClass::mark);  // spacing mark
    CHECK(table.of(0x00B2) == CharClass::number);
    CHECK(table.of(0x2167) == CharClass::number);
    CHECK(table.of(U' ') == CharClass::blank);
    CHECK(table.of(U'\r') == CharClass::newline);
    CHECK(table.of(U'\t') == CharClass::space);
    CHECK(table.of(0x85) == CharClass::space);
    CHECK(table.of(0x2028) == CharClass::space);
    CHECK(table.of(0x200B) == CharClass::other);
    CHECK(table.of(0x1C) == CharClass::other);
    CHECK(table.of(0x10FFFF) == CharClass::other);
}

TEST_SUITE_END();
