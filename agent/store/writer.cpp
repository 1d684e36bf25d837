#include "agent/store/writer.h"

#include <SQLiteCpp/Statement.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "agent/store/codec.h"
#include "agent/store/error.h"
#include "agent/store/schema.h"

namespace skein::agent::store {
namespace {

constexpr std::size_t kQueueMax = 4096;
constexpr std::size_t kGroupMax = 64;

std::string_view raw(const Uid& uid) {
    return {reinterpret_cast<const char*>(uid.bytes.data()), uid.bytes.size()};
}

std::string json_array(const std::vector<std::string>& items) {
    boost::json::array array;
    for (const std::string& item : items) array.emplace_back(model::to_valid_utf8(item));
    return boost::json::serialize(array);
}

std::string sampling_json(const model::SamplingParams& sampling) {
    return boost::json::serialize(boost::json::object{{"temperature", sampling.temperature},
                                                      {"top_k", sampling.top_k},
                                                      {"top_p", sampling.top_p},
                                                      {"min_p", sampling.min_p},
                                                      {"seed", sampling.seed},
                                                      {"rng", "philox4x32-10"}});
}

/// Binds values in order; text must be valid UTF-8, bytes go in as blobs.
class Row {
  public:
    Row(SQLite::Database& db, const char* sql) : statement_(db, sql) {}
    Row& text(std::string_view value) {
        statement_.bind(++index_, model::to_valid_utf8(value));
        return *this;
    }
    Row& blob(std::string_view value) {
        statement_.bind(++index_, value.data() == nullptr ? "" : value.data(),
                        static_cast<int>(value.size()));
        return *this;
    }
    Row& integer(std::int64_t value) {
        statement_.bind(++index_, value);
        return *this;
    }
    Row& real(double value) {
        statement_.bind(++index_, value);
        return *this;
    }
    Row& null() {
        statement_.bind(++index_);
        return *this;
    }
    void run() { statement_.exec(); }
    std::int64_t value() {
        return statement_.executeStep() ? statement_.getColumn(0).getInt64() : -1;
    }

  private:
    SQLite::Statement statement_;
    int index_ = 0;
};

}  // namespace

std::int64_t now_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

struct Writer::Impl {
    using Job = std::function<void(SQLite::Database&)>;

    Impl(std::filesystem::path path, OpenMode mode)
        : file(std::move(path)), db(open_database(file, mode)), thread([this] { work(); }) {}

    ~Impl() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        changed.notify_all();
        thread.join();
    }

    void rethrow_failure() const {
        if (!failure.empty()) throw Error(failure);
    }

    void post(Job job) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return queue.size() < kQueueMax || !failure.empty(); });
        rethrow_failure();
        queue.push_back(std::move(job));
        ++posted;
        changed.notify_all();
    }

    void flush() {
        std::unique_lock lock(mutex);
        const std::uint64_t target = posted;
        changed.wait(lock, [&] { return committed >= target || !failure.empty(); });
        rethrow_failure();
    }

    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [&] { return stopping || !queue.empty(); });
            if (queue.empty()) return;
            std::deque<Job> group;
            while (!queue.empty() && group.size() < kGroupMax) {
                group.push_back(std::move(queue.front()));
                queue.pop_front();
            }
            lock.unlock();
            const std::string problem = commit(group);
            lock.lock();
            if (!problem.empty()) {
                failure = problem;
                queue.clear();
            } else {
                committed += group.size();
            }
            changed.notify_all();
        }
    }

    /// All of the group or nothing. Returns what went wrong.
    std::string commit(const std::deque<Job>& group) {
        try {
            db->exec("BEGIN IMMEDIATE");
            for (const Job& job : group) job(*db);
            db->exec("COMMIT");
            return {};
        } catch (const std::exception& error) {
            db->tryExec("ROLLBACK");
            return explain(file, error);
        }
    }

    std::filesystem::path file;
    std::unique_ptr<SQLite::Database> db;
    std::map<Uid, std::int64_t>
        last_segment;  // of each trajectory; used by the writing thread only

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> queue;
    std::uint64_t posted = 0, committed = 0;
    std::string failure;
    bool stopping = false;
    std::thread thread;  // last: starts when everything above is there

    std::int64_t add_segment(const Uid& trajectory, const Runs& runs) {
        Tokens ids;
        std::vector<std::pair<Origin, std::size_t>> lengths;
        for (const auto& [origin, tokens] : runs) {
            ids.insert(ids.end(), tokens.begin(), tokens.end());
            lengths.emplace_back(origin, tokens.size());
        }
        auto parent = last_segment.find(trajectory);
        if (parent == last_segment.end()) {
            Row last(*db, "SELECT max(id) FROM segment WHERE trajectory=? HAVING max(id) NOT NULL");
            parent = last_segment.emplace(trajectory, last.blob(raw(trajectory)).value()).first;
        }
        const Bytes blob = encode_tokens(ids);
        Row row(*db,
                "INSERT INTO segment(trajectory,parent_id,n_tokens,origins,ids,ids_hash)"
                " VALUES(?,?,?,?,?,?)");
        row.blob(raw(trajectory));
        parent->second < 0 ? row.null() : row.integer(parent->second);
        row.integer(static_cast<std::int64_t>(ids.size())).blob(encode_origins(lengths)).blob(blob);
        row.blob(sha256({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Token)}));
        row.run();
        parent->second = db->getLastInsertRowid();
        return parent->second;
    }

    Bytes add_blob(std::string_view bytes) {
        Bytes hash = sha256(bytes);
        Row(*db, "INSERT OR IGNORE INTO blob(hash,size,bytes) VALUES(?,?,?)")
            .blob(hash)
            .integer(static_cast<std::int64_t>(bytes.size()))
            .blob(compress(bytes))
            .run();
        return hash;
    }

    std::int64_t id_of(const char* table, const char* column, std::string_view value) {
        const std::string t = table, c = column;
        Row(*db, ("INSERT OR IGNORE INTO " + t + "(" + c + ") VALUES(?)").c_str())
            .text(value)
            .run();
        return Row(*db, ("SELECT id FROM " + t + " WHERE " + c + "=?").c_str()).text(value).value();
    }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::~Writer() = default;

std::unique_ptr<Writer> Writer::create(const std::filesystem::path& directory,
                                       const RunRecord& run) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) {
        throw Error("store: cannot make the run directory " + directory.string() + ": " +
                    error.message() + ". Choose one that can be written (run_dir, --run-dir)");
    }
    auto writer = std::unique_ptr<Writer>(
        new Writer(std::make_unique<Impl>(directory / "skein.db", OpenMode::create)));
    writer->impl_->post([run](SQLite::Database& db) {
        Row(db,
            "INSERT INTO run(uid,harness,command,config,version,status,began_ms)"
            " VALUES(?,?,?,?,?,'running',?)")
            .blob(raw(run.uid))
            .text(run.harness)
            .text(run.command)
            .text(run.config)
            .text(run.version)
            .integer(now_ms())
            .run();
    });
    writer->flush();
    return writer;
}

std::unique_ptr<Writer> Writer::open(const std::filesystem::path& directory) {
    return std::unique_ptr<Writer>(
        new Writer(std::make_unique<Impl>(directory / "skein.db", OpenMode::write)));
}

void Writer::begin_trajectory(const TrajectoryRecord& r) {
    impl_->post([impl = impl_.get(), r, at = now_ms()](SQLite::Database& db) {
        const std::int64_t weights = impl->id_of("weights", "description", r.model);
        Row row(
            db,
            "INSERT INTO trajectory(uid,parent_uid,role,task,weights_id,chat_format,tools,config,"
            "status,began_ms) VALUES(?,?,?,?,?,?,?,?,'running',?)");
        row.blob(raw(r.uid));
        r.parent ? row.blob(raw(*r.parent)) : row.null();
        row.text(r.role)
            .text(r.task)
            .integer(weights)
            .text(r.chat_format)
            .text(r.tools_json)
            .text(r.config_json)
            .integer(at)
            .run();
    });
}

void Writer::record_step(const StepRecord& r) {
    impl_->post([impl = impl_.get(), r](SQLite::Database& db) {
        Runs reply;
        for (std::size_t i = 0; i < r.reply.tokens.size(); ++i) {
            const Origin origin = i < r.reply.origins.size() ? r.reply.origins[i] : Origin::sampled;
            if (reply.empty() || reply.back().first != origin) reply.emplace_back(origin, Tokens{});
            reply.back().second.push_back(r.reply.tokens[i]);
        }
        const std::int64_t delta = impl->add_segment(r.trajectory, r.delta);
        const std::int64_t sampled = impl->add_segment(r.trajectory, reply);
        const std::int64_t closing = impl->add_segment(r.trajectory, r.closing);
        const std::int64_t sampler = impl->id_of("sampler", "json", sampling_json(r.sampling));
        Row(db,
            "INSERT INTO step(uid,trajectory,sequence,delta_segment,reply_segment,closing_segment,"
            "said,forced,text,logprobs,logprob_kind,sampler_id,rng_position,grammar,finish,error,"
            "reused_tokens,evaluated_tokens,prefill_s,decode_s,began_ms,ended_ms)"
            " VALUES(?,?,?,?,?,?,?,?,?,?,'raw',?,?,?,?,?,?,?,?,?,?,?)")
            .blob(raw(r.uid))
            .blob(raw(r.trajectory))
            .integer(r.sequence)
            .integer(delta)
            .integer(sampled)
            .integer(closing)
            .blob(encode_strings(r.said))
            .text(json_array(r.forced))
            .blob(r.text)
            .blob(encode_floats(r.reply.logprobs))
            .integer(sampler)
            .integer(static_cast<std::int64_t>(r.reply.rng_position))
            .text(r.grammar)
            .text(to_string(r.reply.finish))
            .text(r.reply.error)
            .integer(r.reply.reused_tokens)
            .integer(r.reply.evaluated_tokens)
            .real(r.reply.prefill_seconds)
            .real(r.reply.decode_seconds)
            .integer(r.began_ms)
            .integer(r.ended_ms)
            .run();
    });
}

void Writer::record_tool_call(const ToolCallRecord& r) {
    impl_->post([impl = impl_.get(), r](SQLite::Database& db) {
        const Bytes result = impl->add_blob(r.result.text), shown = impl->add_blob(r.shown);
        // A call that a crash or a cancellation cut short is answered again by the resumed run.
        Row(db,
            "INSERT OR REPLACE INTO "
            "tool_call(step,sequence,call_id,name,arguments,effect,status,result_hash,"
            "shown_hash,details,began_ms,ended_ms) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)")
            .blob(raw(r.step))
            .integer(r.sequence)
            .text(r.call.id)
            .blob(r.call.name)
            .blob(r.call.arguments)
            .text(tools::to_string(r.effect))
            .text(tools::to_string(r.result.status))
            .blob(result)
            .blob(shown)
            .text(boost::json::serialize(r.result.details))
            .integer(r.began_ms)
            .integer(r.ended_ms)
            .run();
    });
}

void Writer::record_reward(const RewardRecord& r) {
    impl_->post([r, at = now_ms()](SQLite::Database& db) {
        Row(db,
            "INSERT INTO reward(scope,ref,component,value,verifier,details,at_ms)"
            " VALUES(?,?,?,?,?,?,?)")
            .text(r.scope)
            .blob(raw(r.ref))
            .text(r.component)
            .real(r.value)
            .text(r.verifier)
            .text(r.details_json)
            .integer(at)
            .run();
    });
}

void Writer::record_event(const std::optional<Uid>& trajectory, std::string_view kind,
                          std::string_view json) {
    impl_->post([trajectory, kind = std::string(kind), json = std::string(json),
                 at = now_ms()](SQLite::Database& db) {
        Row row(db, "INSERT INTO event(trajectory,kind,json,at_ms) VALUES(?,?,?,?)");
        trajectory ? row.blob(raw(*trajectory)) : row.null();
        row.text(kind).text(json).integer(at).run();
    });
}

void Writer::finish_trajectory(const Uid& trajectory, ExitStatus status,
                               std::string_view final_message,
                               std::span<const std::pair<Origin, Tokens>> tail) {
    impl_->post([impl = impl_.get(), trajectory, status, message = std::string(final_message),
                 runs = Runs(tail.begin(), tail.end()), at = now_ms()](SQLite::Database& db) {
        if (!runs.empty()) impl->add_segment(trajectory, runs);
        Row(db, "UPDATE trajectory SET status=?,final_message=?,ended_ms=? WHERE uid=?")
            .text(to_string(status))
            .blob(message)
            .integer(at)
            .blob(raw(trajectory))
            .run();
    });
    impl_->flush();
}

void Writer::record_task(std::string_view id, int version, std::string_view json) {
    impl_->post([id = std::string(id), version, json = std::string(json)](SQLite::Database& db) {
        Row(db, "INSERT OR IGNORE INTO task(id,version,hash,json) VALUES(?,?,?,?)")
            .text(id)
            .integer(version)
            .blob(sha256(json))
            .text(json)
            .run();
    });
}

void Writer::begin_episode(const EpisodeRecord& r) {
    impl_->post([r, at = now_ms()](SQLite::Database& db) {
        Row(db,
            "INSERT INTO episode(uid,task_id,group_key,repetition,mode,status,began_ms)"
            " VALUES(?,?,?,?,?,'running',?)")
            .blob(raw(r.uid))
            .text(r.task_id)
            .text(r.group_key)
            .integer(r.repetition)
            .text(r.mode)
            .integer(at)
            .run();
    });
}

void Writer::finish_episode(const Uid& uid, std::string_view status, std::string_view stop_reason) {
    impl_->post([uid, status = std::string(status), reason = std::string(stop_reason),
                 at = now_ms()](SQLite::Database& db) {
        Row(db, "UPDATE episode SET status=?,stop_reason=?,ended_ms=? WHERE uid=?")
            .text(status)
            .text(reason)
            .integer(at)
            .blob(raw(uid))
            .run();
    });
}

std::string Writer::put_blob(std::string_view bytes) {
    impl_->post([impl = impl_.get(), copy = std::string(bytes)](SQLite::Database&) {
        impl->add_blob(copy);
    });
    return to_hex(sha256(bytes));
}

void Writer::finish_run(std::string_view status, std::string_view result_json) {
    impl_->post([status = std::string(status), result = std::string(result_json),
                 at = now_ms()](SQLite::Database& db) {
        Row(db, "UPDATE run SET status=?,result=?,ended_ms=?")
            .text(status)
            .text(result)
            .integer(at)
            .run();
    });
    impl_->flush();
}

void Writer::flush() {
    impl_->flush();
}

}  // namespace skein::agent::store
