#pragma once
// The tables of a run's `skein.db`, its identity and how it is opened.
//
// One file a run directory. `application_id` 0x736B656E ("sken"), `user_version` = kSchemaVersion.
// All tables are STRICT. Text columns are always valid UTF-8; raw bytes are in blob columns.
// Uids are 16-byte, time-ordered. A trajectory's TokenLog is its steps' segments
// (delta, reply, closing) in order, then the segments after the last step.
// One connection writes and checkpoints; readers only read.

#include <SQLiteCpp/Database.h>

#include <filesystem>
#include <memory>

namespace skein::agent::store {

constexpr int kSchemaVersion = 1;
constexpr int kApplicationId = 0x736B656E;

enum class OpenMode { create, write, read };

/// Opens `file`. `create` refuses an existing file, `write` and `read` refuse a missing one;
/// nothing is ever created in place of an existing store. Throws: Error for a file that is not a
/// skein store, a newer schema, a missing table, a folder that cannot be written; SQLite's reason
/// and a remedy are in the message.
std::unique_ptr<SQLite::Database> open_database(const std::filesystem::path& file, OpenMode mode);

/// The message for an SQLite failure on `file`, with a remedy for the usual ones (disk full,
/// read-only, locked, corrupt).
std::string explain(const std::filesystem::path& file, const std::exception& error);

}  // namespace skein::agent::store
