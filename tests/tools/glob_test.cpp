#include "tools/glob.h"

#include <doctest/doctest.h>

using skein::tools::make_glob;

namespace {
bool fits(std::string_view glob, std::string_view path) {
    return make_glob(glob).matches(path);
}
}  // namespace

TEST_SUITE("tools/glob") {
    TEST_CASE("a glob without a slash is about names at any depth") {
        CHECK(fits("*.cpp", "a.cpp"));
        CHECK(fits("*.cpp", "src/deep/a.cpp"));
        CHECK_FALSE(fits("*.cpp", "a.cpp.orig"));
        CHECK(fits("?.h", "x/a.h"));
        CHECK_FALSE(fits("?.h", "x/ab.h"));
    }

    TEST_CASE("a glob with a slash is about the whole path") {
        CHECK(fits("src/*.c", "src/a.c"));
        CHECK_FALSE(fits("src/*.c", "src/sub/a.c"));
        CHECK_FALSE(fits("src/*.c", "x/src/a.c"));
        CHECK(fits("src/**/a.c", "src/a.c"));
        CHECK(fits("src/**/a.c", "src/x/y/a.c"));
        CHECK(fits("**/a.c", "a.c"));
        CHECK(fits("src/**", "src/x/y"));
        CHECK(fits("./a/*", "a/b"));
    }

    TEST_CASE("sets, alternatives and escapes") {
        CHECK(fits("[a-c].{h,cpp}", "b.cpp"));
        CHECK_FALSE(fits("[!a-c].h", "b.h"));
        CHECK(fits("a\\*b", "a*b"));
        CHECK_FALSE(fits("a\\*b", "axb"));
        CHECK(fits("a.b+c(d)", "a.b+c(d)"));
        CHECK(fits("a,b", "a,b"));
        CHECK_THROWS_AS(make_glob("[a"), skein::tools::PatternError);
        CHECK_THROWS_AS(make_glob("{a"), skein::tools::PatternError);
    }
}
