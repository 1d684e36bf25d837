#include "agent/store/schema.h"

#include <doctest/doctest.h>

#include <fstream>

#include "agent/store/error.h"
#include "tests/support/temporary_directory.h"

using namespace skein::agent::store;
using skein::test::TemporaryDirectory;

namespace {

std::string message_of(const std::filesystem::path& file, OpenMode mode) {
    try {
        open_database(file, mode);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_SUITE("agent/store/schema") {
    TEST_CASE("schema: a new store is recognised by its identity and has strict tables") {
        const TemporaryDirectory directory;
        const auto file = directory.path() / "skein.db";
        open_database(file, OpenMode::create);
        const auto db = open_database(file, OpenMode::write);
        CHECK(db->execAndGet("PRAGMA journal_mode").getString() == "wal");
        CHECK(db->execAndGet("PRAGMA application_id").getInt() == kApplicationId);
        CHECK(db->execAndGet("SELECT count(*) FROM pragma_table_list WHERE schema='main' AND "
                             "name NOT LIKE 'sqlite%' AND strict=0")
                  .getInt() == 0);
        CHECK(db->execAndGet("PRAGMA synchronous").getInt() == 1);
    }

    TEST_CASE("schema: an existing store is never made anew, a missing one never invented") {
        const TemporaryDirectory directory;
        const auto file = directory.path() / "skein.db";
        CHECK(message_of(file, OpenMode::read).find("no store at") != std::string::npos);
        CHECK(message_of(file, OpenMode::write).find("no store at") != std::string::npos);
        CHECK_FALSE(std::filesystem::exists(file));
        open_database(file, OpenMode::create);
        CHECK(message_of(file, OpenMode::create).find("exists already") != std::string::npos);
    }

    TEST_CASE("schema: foreign, newer and incomplete files are refused and left as they are") {
        const TemporaryDirectory directory;
        const auto text = directory.path() / "text.db";
        std::ofstream(text) << std::string(4096, 'x');
        CHECK(message_of(text, OpenMode::write).find("damaged") != std::string::npos);

        const auto foreign = directory.path() / "foreign.db";
        SQLite::Database(foreign.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
            .exec("CREATE TABLE t(a)");
        const std::string before = bytes_of(foreign);
        CHECK(message_of(foreign, OpenMode::write).find("not a skein store") != std::string::npos);
        CHECK(bytes_of(foreign) == before);

        const auto newer = directory.path() / "newer.db";
        open_database(newer, OpenMode::create)->exec("PRAGMA user_version=999");
        CHECK(message_of(newer, OpenMode::read).find("schema 999") != std::string::npos);

        const auto cut = directory.path() / "cut.db";
        open_database(cut, OpenMode::create)->exec("DROP TABLE reward");
        CHECK(message_of(cut, OpenMode::write).find("'reward'") != std::string::npos);
    }
}
