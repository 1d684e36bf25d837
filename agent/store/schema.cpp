#include "agent/store/schema.h"

#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <sqlite3.h>

#include "agent/store/error.h"

namespace skein::agent::store {
namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE run(
  uid BLOB PRIMARY KEY, harness TEXT NOT NULL, command TEXT NOT NULL, config TEXT NOT NULL,
  version TEXT NOT NULL, status TEXT NOT NULL, result TEXT, began_ms INTEGER NOT NULL,
  ended_ms INTEGER) STRICT;
CREATE TABLE weights(id INTEGER PRIMARY KEY, description TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE sampler(id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE task(
  id TEXT NOT NULL, version INTEGER NOT NULL, hash BLOB NOT NULL, json TEXT NOT NULL,
  PRIMARY KEY(id, version)) STRICT;
CREATE TABLE episode(
  uid BLOB PRIMARY KEY, task_id TEXT NOT NULL, group_key TEXT NOT NULL, repetition INTEGER NOT NULL,
  mode TEXT NOT NULL, status TEXT NOT NULL, stop_reason TEXT, began_ms INTEGER NOT NULL,
  ended_ms INTEGER) STRICT;
CREATE TABLE attempt(
  episode BLOB NOT NULL REFERENCES episode(uid), n INTEGER NOT NULL, worker TEXT NOT NULL,
  heartbeat_ms INTEGER NOT NULL, status TEXT NOT NULL, PRIMARY KEY(episode, n)) STRICT;
CREATE TABLE trajectory(
  uid BLOB PRIMARY KEY, parent_uid BLOB, role TEXT NOT NULL, task TEXT NOT NULL,
  weights_id INTEGER NOT NULL REFERENCES weights(id), chat_format TEXT NOT NULL,
  tools TEXT NOT NULL, config TEXT NOT NULL, status TEXT NOT NULL, final_message BLOB,
  began_ms INTEGER NOT NULL, ended_ms INTEGER) STRICT;
CREATE TABLE segment(
  id INTEGER PRIMARY KEY, trajectory BLOB NOT NULL REFERENCES trajectory(uid),
  parent_id INTEGER REFERENCES segment(id), n_tokens INTEGER NOT NULL, origins BLOB NOT NULL,
  ids BLOB NOT NULL, ids_hash BLOB NOT NULL) STRICT;
CREATE INDEX segment_of_trajectory ON segment(trajectory, id);
CREATE TABLE step(
  uid BLOB PRIMARY KEY, trajectory BLOB NOT NULL REFERENCES trajectory(uid),
  sequence INTEGER NOT NULL, delta_segment INTEGER NOT NULL REFERENCES segment(id),
  reply_segment INTEGER NOT NULL REFERENCES segment(id),
  closing_segment INTEGER NOT NULL REFERENCES segment(id),
  said BLOB NOT NULL, forced TEXT NOT NULL, text BLOB NOT NULL, logprobs BLOB NOT NULL,
  logprob_kind TEXT NOT NULL, sampler_id INTEGER NOT NULL REFERENCES sampler(id),
  rng_position INTEGER NOT NULL, grammar TEXT NOT NULL, finish TEXT NOT NULL, error TEXT NOT NULL,
  reused_tokens INTEGER NOT NULL, evaluated_tokens INTEGER NOT NULL, prefill_s REAL NOT NULL,
  decode_s REAL NOT NULL, began_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
  UNIQUE(trajectory, sequence)) STRICT;
CREATE TABLE tool_call(
  step BLOB NOT NULL REFERENCES step(uid), sequence INTEGER NOT NULL, call_id TEXT NOT NULL,
  name BLOB NOT NULL, arguments BLOB NOT NULL, effect TEXT NOT NULL, status TEXT NOT NULL,
  result_hash BLOB NOT NULL REFERENCES blob(hash), shown_hash BLOB NOT NULL REFERENCES blob(hash),
  details TEXT NOT NULL, began_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
  PRIMARY KEY(step, sequence)) STRICT;
CREATE TABLE blob(hash BLOB PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE TABLE reward(
  id INTEGER PRIMARY KEY, scope TEXT NOT NULL, ref BLOB NOT NULL, component TEXT NOT NULL,
  value REAL NOT NULL, verifier TEXT NOT NULL, details TEXT NOT NULL,
  at_ms INTEGER NOT NULL) STRICT;
CREATE TABLE event(
  id INTEGER PRIMARY KEY, trajectory BLOB, kind TEXT NOT NULL, json TEXT NOT NULL,
  at_ms INTEGER NOT NULL) STRICT;
CREATE INDEX event_by_kind ON event(kind, id);
)sql";

int pragma_int(SQLite::Database& db, const char* name) {
    return db.execAndGet(std::string("PRAGMA ") + name).getInt();
}

void check_identity(SQLite::Database& db, const std::filesystem::path& file) {
    const int application = pragma_int(db, "application_id");
    if (application != kApplicationId) {
        throw Error("store: " + file.string() + " is not a skein store (application_id " +
                    std::to_string(application) + ", expected " + std::to_string(kApplicationId) +
                    ")");
    }
    const int version = pragma_int(db, "user_version");
    if (version != kSchemaVersion) {
        throw Error("store: " + file.string() + " has schema " + std::to_string(version) +
                    ", this build reads " + std::to_string(kSchemaVersion) +
                    "; the file is unchanged. Open it with the skein that wrote it");
    }
    for (const char* table :
         {"run", "weights", "sampler", "task", "episode", "attempt", "trajectory", "segment",
          "step", "tool_call", "blob", "reward", "event"}) {
        if (!db.tableExists(table)) {
            throw Error("store: " + file.string() + " lacks the table '" + table +
                        "'; the file is unchanged");
        }
    }
}

void create_tables(SQLite::Database& db) {
    // The page size must be set before the journal mode.
    db.exec("PRAGMA page_size=8192");
    db.exec("PRAGMA journal_mode=WAL");
    db.exec("BEGIN IMMEDIATE");
    db.exec("PRAGMA application_id=" + std::to_string(kApplicationId));
    db.exec("PRAGMA user_version=" + std::to_string(kSchemaVersion));
    db.exec(kTables);
    db.exec("COMMIT");
}

}  // namespace

std::string explain(const std::filesystem::path& file, const std::exception& error) {
    std::string message = "store: " + file.string() + ": " + error.what();
    const auto* sqlite = dynamic_cast<const SQLite::Exception*>(&error);
    if (sqlite == nullptr) return message;
    switch (sqlite->getErrorCode()) {
        case SQLITE_FULL:
            message += ". Free disk space, then `skein resume` continues the run";
            break;
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
            message += ". Choose a run directory that can be written (run_dir, --run-dir)";
            break;
        case SQLITE_BUSY:
            message += ". Another process holds the store for over a minute";
            break;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            message += ". The file is damaged; it was left as it is";
            break;
        default:
            break;
    }
    return message;
}

std::unique_ptr<SQLite::Database> open_database(const std::filesystem::path& file, OpenMode mode) {
    const bool exists = std::filesystem::exists(file);
    if (mode == OpenMode::create && exists) {
        throw Error("store: " + file.string() + " exists already; a new run needs a new directory");
    }
    if (mode != OpenMode::create && !exists) {
        throw Error("store: no store at " + file.string() +
                    "; `skein log list` shows the runs there are");
    }
    try {
        const int flags = mode == OpenMode::create ? SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE
                                                   : SQLite::OPEN_READWRITE;
        auto db = std::make_unique<SQLite::Database>(file.string(), flags, 60000);
        if (mode == OpenMode::create) create_tables(*db);
        check_identity(*db, file);
        db->exec("PRAGMA synchronous=NORMAL");
        db->exec("PRAGMA foreign_keys=ON");
        db->exec("PRAGMA mmap_size=0");
        // Debian 12's SQLite can lose pages when two connections checkpoint at once (fixed in
        // 3.51.3), so only the writing connection ever does.
        if (mode == OpenMode::read) {
            db->exec("PRAGMA wal_autocheckpoint=0");
            db->exec("PRAGMA query_only=ON");
        } else {
            db->exec("PRAGMA journal_size_limit=67108864");
        }
        return db;
    } catch (const SQLite::Exception& error) {
        throw Error(explain(file, error));
    }
}

}  // namespace skein::agent::store
