#include "sandbox/temporary_directory.h"

#include <doctest/doctest.h>

#include <fstream>

#include "sandbox/sandbox.h"

namespace skein::sandbox {
namespace {

TEST_SUITE_BEGIN("sandbox/temporary_directory");

TEST_CASE("two directories differ, are private, and go with what is in them") {
    std::filesystem::path path;
    {
        const TemporaryDirectory one, two;
        path = one.path();
        CHECK(one.path() != two.path());
        CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms::owner_all);
        std::filesystem::create_directory(path / "sub");
        std::ofstream(path / "sub/file") << "x";
    }
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a directory is made where it is asked for, or the error names the place") {
    const TemporaryDirectory outer;
    const TemporaryDirectory inner(outer.path());
    CHECK(inner.path().parent_path() == outer.path());
    CHECK_THROWS_WITH_AS(TemporaryDirectory(outer.path() / "missing"),
                         doctest::Contains("missing"), Error);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
