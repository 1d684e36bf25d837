#include "model/load/mapped_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <utility>

#include "support/gguf_writer.h"
#include "support/model_error.h"

using namespace skein::model;
using namespace skein::test;

TEST_SUITE("model/load/mapped_file") {
    TEST_CASE("the bytes of a file can be read, also after moving the owner") {
        const TemporaryFolder folder;
        write_file(folder / "a", "hello");
        MappedFile first(folder / "a");
        const MappedFile second(std::move(first));
        REQUIRE(second.bytes().size() == 5);
        CHECK(second.bytes()[4] == std::byte{'o'});
    }

    TEST_CASE("a missing, empty or special file is refused by name") {
        const TemporaryFolder folder;
        write_file(folder / "empty", "");
        REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
        CHECK(contains(error_text([&] { MappedFile(folder / "missing"); }),
                       "missing': No such file or directory"));
        CHECK(contains(error_text([&] { MappedFile(folder / "empty"); }), "is empty"));
        CHECK(contains(error_text([&] { MappedFile(folder.path()); }), "it is a directory"));
        CHECK(contains(error_text([&] { MappedFile(folder / "pipe"); }), "not a regular file"));
    }

    TEST_CASE("a file that shrinks while it is open is noticed") {
        const TemporaryFolder folder;
        write_file(folder / "a", "hello");
        const MappedFile file(folder / "a");
        file.check_size_unchanged();
        std::filesystem::resize_file(folder / "a", 3);
        CHECK(contains(error_text([&] { file.check_size_unchanged(); }),
                       "5 bytes mapped, 3 bytes now"));
    }
}
