#include "sandbox/temporary_directory.h"

#include <doctest/doctest.h>

#include <fstream>

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

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
