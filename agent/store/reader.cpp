#include "agent/store/reader.h"

#include <SQLiteCpp/Statement.h>

#include <boost/json/parse.hpp>

#include "agent/store/schema.h"

namespace skein::agent::store {
namespace {

std::string bytes(const SQLite::Column& column) {
    const void* data = column.getBlob();
    return data == nullptr ? std::string()
                           : std::string(static_cast<const char*>(data),
                                         static_cast<std::size_t>(column.getBytes()));
}

Uid uid_of(const SQLite::Column& column) {
    const std::string raw = bytes(column);
    Uid uid;
    if (raw.size() != uid.bytes.size()) {
        throw Error("store: a uid of " + std::to_string(raw.size()) + " bytes, expected 16");
    }
    std::copy(raw.begin(), raw.end(), uid.bytes.begin());
    return uid;
}

std::string_view raw(const Uid& uid) {
    return {reinterpret_cast<const char*>(uid.bytes.data()), uid.bytes.size()};
}

void bind_uid(SQLite::Statement& statement, int index, const Uid& uid) {
    statement.bind(index, raw(uid).data(), static_cast<int>(raw(uid).size()));
}

std::vector<std::string> strings(const std::string& json) {
    const boost::json::value parsed = boost::json::parse(json);
    std::vector<std::string> items;
    for (const auto& item : parsed.as_array()) items.emplace_back(item.as_string());
    return items;
}

template <class Enum>
Enum named(std::string_view text, Enum last, const char* what) {
    for (int i = 0; i <= static_cast<int>(last); ++i) {
        if (to_string(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
    }
    throw Error("store: unknown " + std::string(what) + " '" + std::string(text) + "'");
}

model::SamplingParams sampling_of(const std::string& json) {
    const boost::json::value parsed = boost::json::parse(json);
    const boost::json::object& object = parsed.as_object();
    model::SamplingParams sampling;
    sampling.temperature = object.at("temperature").to_number<float>();
    sampling.top_k = object.at("top_k").to_number<int>();
    sampling.top_p = object.at("top_p").to_number<float>();
    sampling.min_p = object.at("min_p").to_number<float>();
    sampling.seed = object.at("seed").to_number<std::uint64_t>();
    return sampling;
}

}  // namespace

tools::Effect parse_effect(std::string_view name) {
    return named(name, tools::Effect::external, "tool effect");
}

ToolCallRecord StoredToolCall::as_record(const Uid& step) const {
    ToolCallRecord record;
    record.step = step;
    record.sequence = sequence;
    record.call = call;
    record.effect = parse_effect(effect);
    record.result.status = named(status, tools::ToolStatus::harness_error, "tool status");
    record.result.text = result;
    record.result.details = boost::json::parse(details_json).as_object();
    record.shown = shown;
    record.began_ms = began_ms;
    record.ended_ms = ended_ms;
    return record;
}

struct Reader::Impl {
    explicit Impl(const std::filesystem::path& directory)
        : file(directory / "skein.db"), db(open_database(file, OpenMode::read)) {}

    std::filesystem::path file;
    std::unique_ptr<SQLite::Database> db;

    Runs segment(std::int64_t id) const {
        SQLite::Statement query(*db,
                                "SELECT n_tokens,origins,ids,ids_hash FROM segment WHERE id=?");
        query.bind(1, id);
        if (!query.executeStep())
            throw Error("store: segment " + std::to_string(id) + " is missing");
        const Tokens ids = decode_tokens(bytes(query.getColumn(2)));
        const std::string_view memory{reinterpret_cast<const char*>(ids.data()),
                                      ids.size() * sizeof(Token)};
        if (sha256(memory) != bytes(query.getColumn(3)) ||
            static_cast<std::int64_t>(ids.size()) != query.getColumn(0).getInt64()) {
            throw Error("store: the tokens of segment " + std::to_string(id) +
                        " differ from their hash");
        }
        Runs runs;
        std::size_t at = 0;
        for (const auto& [origin, length] : decode_origins(bytes(query.getColumn(1)))) {
            if (length > ids.size() - at) throw Error("store: origins exceed their segment");
            runs.emplace_back(origin,
                              Tokens(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                     ids.begin() + static_cast<std::ptrdiff_t>(at + length)));
            at += length;
        }
        if (at != ids.size()) throw Error("store: origins do not cover their segment");
        return runs;
    }

    std::string blob(std::string_view hash) const {
        SQLite::Statement query(*db, "SELECT bytes FROM blob WHERE hash=?");
        query.bind(1, hash.data(), static_cast<int>(hash.size()));
        if (!query.executeStep()) throw Error("store: no blob " + to_hex(hash));
        std::string content = decompress(bytes(query.getColumn(0)));
        if (sha256(content) != hash) throw Error("store: blob " + to_hex(hash) + " is damaged");
        return content;
    }

    std::vector<StoredToolCall> calls(const Uid& step) const {
        SQLite::Statement query(*db,
                                "SELECT sequence,call_id,name,arguments,effect,status,result_hash,"
                                "shown_hash,details,began_ms,ended_ms FROM tool_call WHERE step=?"
                                " ORDER BY sequence");
        bind_uid(query, 1, step);
        std::vector<StoredToolCall> list;
        while (query.executeStep()) {
            StoredToolCall call;
            call.sequence = query.getColumn(0).getInt();
            call.call = {query.getColumn(1).getString(), bytes(query.getColumn(2)),
                         bytes(query.getColumn(3))};
            call.effect = query.getColumn(4).getString();
            call.status = query.getColumn(5).getString();
            call.result = blob(bytes(query.getColumn(6)));
            call.shown = blob(bytes(query.getColumn(7)));
            call.details_json = query.getColumn(8).getString();
            call.began_ms = query.getColumn(9).getInt64();
            call.ended_ms = query.getColumn(10).getInt64();
            list.push_back(std::move(call));
        }
        return list;
    }
};

Reader::Reader(const std::filesystem::path& directory) : impl_(std::make_unique<Impl>(directory)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

StoredRun Reader::run() const {
    SQLite::Statement query(*impl_->db,
                            "SELECT uid,harness,command,config,version,status,coalesce(result,''),"
                            "began_ms,ended_ms,(SELECT count(*) FROM trajectory),"
                            "(SELECT count(*) FROM step),"
                            "(SELECT coalesce(sum(n_tokens),0) FROM segment) FROM run");
    if (!query.executeStep()) throw Error("store: " + impl_->file.string() + " holds no run");
    StoredRun run;
    run.uid = uid_of(query.getColumn(0));
    run.harness = query.getColumn(1).getString();
    run.command = query.getColumn(2).getString();
    run.config = query.getColumn(3).getString();
    run.version = query.getColumn(4).getString();
    run.status = query.getColumn(5).getString();
    run.result_json = query.getColumn(6).getString();
    run.began_ms = query.getColumn(7).getInt64();
    if (!query.getColumn(8).isNull()) run.ended_ms = query.getColumn(8).getInt64();
    run.n_trajectories = query.getColumn(9).getInt64();
    run.n_steps = query.getColumn(10).getInt64();
    run.n_tokens = query.getColumn(11).getInt64();
    return run;
}

std::vector<StoredTrajectory> Reader::trajectories() const {
    SQLite::Statement query(*impl_->db,
                            "SELECT t.uid,t.parent_uid,t.role,t.task,w.description,t.chat_format,"
                            "t.tools,t.config,t.status,t.final_message,t.began_ms FROM trajectory t"
                            " JOIN weights w ON w.id=t.weights_id ORDER BY t.rowid");
    std::vector<StoredTrajectory> list;
    while (query.executeStep()) {
        StoredTrajectory item;
        item.record.uid = uid_of(query.getColumn(0));
        if (!query.getColumn(1).isNull()) item.record.parent = uid_of(query.getColumn(1));
        item.record.role = query.getColumn(2).getString();
        item.record.task = query.getColumn(3).getString();
        item.record.model = query.getColumn(4).getString();
        item.record.chat_format = query.getColumn(5).getString();
        item.record.tools_json = query.getColumn(6).getString();
        item.record.config_json = query.getColumn(7).getString();
        item.status = query.getColumn(8).getString();
        item.final_message = bytes(query.getColumn(9));
        item.began_ms = query.getColumn(10).getInt64();
        list.push_back(std::move(item));
    }
    return list;
}

std::vector<StoredStep> Reader::steps(const Uid& trajectory) const {
    SQLite::Statement query(
        *impl_->db,
        "SELECT s.uid,s.sequence,s.delta_segment,s.reply_segment,s.closing_segment,s.said,s.forced,"
        "s.text,s.logprobs,p.json,s.rng_position,s.grammar,s.finish,s.error,s.reused_tokens,"
        "s.evaluated_tokens,s.prefill_s,s.decode_s,s.began_ms,s.ended_ms FROM step s"
        " JOIN sampler p ON p.id=s.sampler_id WHERE s.trajectory=? ORDER BY s.sequence");
    bind_uid(query, 1, trajectory);
    std::vector<StoredStep> list;
    while (query.executeStep()) {
        StoredStep item;
        StepRecord& r = item.record;
        r.uid = uid_of(query.getColumn(0));
        r.trajectory = trajectory;
        r.sequence = query.getColumn(1).getInt();
        r.delta = impl_->segment(query.getColumn(2).getInt64());
        for (const auto& [origin, tokens] : impl_->segment(query.getColumn(3).getInt64())) {
            r.reply.tokens.insert(r.reply.tokens.end(), tokens.begin(), tokens.end());
            r.reply.origins.insert(r.reply.origins.end(), tokens.size(), origin);
        }
        r.closing = impl_->segment(query.getColumn(4).getInt64());
        r.said = decode_strings(bytes(query.getColumn(5)));
        r.forced = strings(query.getColumn(6).getString());
        r.text = bytes(query.getColumn(7));
        r.reply.logprobs = decode_floats(bytes(query.getColumn(8)));
        r.sampling = sampling_of(query.getColumn(9).getString());
        r.reply.rng_position = static_cast<std::uint64_t>(query.getColumn(10).getInt64());
        r.grammar = query.getColumn(11).getString();
        r.reply.finish =
            named(query.getColumn(12).getString(), FinishReason::error, "finish reason");
        r.reply.error = query.getColumn(13).getString();
        r.reply.reused_tokens = query.getColumn(14).getInt64();
        r.reply.evaluated_tokens = query.getColumn(15).getInt64();
        r.reply.prefill_seconds = query.getColumn(16).getDouble();
        r.reply.decode_seconds = query.getColumn(17).getDouble();
        r.began_ms = query.getColumn(18).getInt64();
        r.ended_ms = query.getColumn(19).getInt64();
        item.calls = impl_->calls(r.uid);
        list.push_back(std::move(item));
    }
    return list;
}

TokenLog Reader::token_log(const Uid& trajectory) const {
    SQLite::Statement query(*impl_->db,
                            "SELECT delta_segment,reply_segment,closing_segment FROM step"
                            " WHERE trajectory=? ORDER BY sequence");
    bind_uid(query, 1, trajectory);
    TokenLog log;
    while (query.executeStep()) {
        for (int column = 0; column < 3; ++column) {
            for (const auto& [origin, tokens] :
                 impl_->segment(query.getColumn(column).getInt64())) {
                log.append(origin, tokens);
            }
        }
    }
    for (const auto& [origin, tokens] : tail(trajectory)) log.append(origin, tokens);
    return log;
}

Runs Reader::tail(const Uid& trajectory) const {
    SQLite::Statement query(*impl_->db,
                            "SELECT id FROM segment WHERE trajectory=?1 AND id>coalesce((SELECT "
                            "max(closing_segment) FROM step WHERE trajectory=?1),0) ORDER BY id");
    bind_uid(query, 1, trajectory);
    Runs runs;
    while (query.executeStep()) {
        for (auto& run : impl_->segment(query.getColumn(0).getInt64())) runs.push_back(run);
    }
    return runs;
}

std::vector<StoredEvent> Reader::events(std::string_view kind) const {
    SQLite::Statement query(*impl_->db,
                            "SELECT id,trajectory,kind,json,at_ms FROM event"
                            " WHERE ?1='' OR kind=?1 ORDER BY id");
    query.bind(1, std::string(kind));
    std::vector<StoredEvent> list;
    while (query.executeStep()) {
        StoredEvent item;
        item.id = query.getColumn(0).getInt64();
        if (!query.getColumn(1).isNull()) item.trajectory = uid_of(query.getColumn(1));
        item.kind = query.getColumn(2).getString();
        item.json = query.getColumn(3).getString();
        item.at_ms = query.getColumn(4).getInt64();
        list.push_back(std::move(item));
    }
    return list;
}

std::vector<StoredReward> Reader::rewards() const {
    SQLite::Statement query(*impl_->db,
                            "SELECT scope,ref,component,value,verifier,details,at_ms FROM reward"
                            " ORDER BY id");
    std::vector<StoredReward> list;
    while (query.executeStep()) {
        StoredReward item;
        item.record.scope = query.getColumn(0).getString();
        item.record.ref = uid_of(query.getColumn(1));
        item.record.component = query.getColumn(2).getString();
        item.record.value = query.getColumn(3).getDouble();
        item.record.verifier = query.getColumn(4).getString();
        item.record.details_json = query.getColumn(5).getString();
        item.at_ms = query.getColumn(6).getInt64();
        list.push_back(std::move(item));
    }
    return list;
}

std::vector<StoredEpisode> Reader::episodes() const {
    SQLite::Statement query(*impl_->db,
                            "SELECT uid,task_id,group_key,repetition,mode,status,"
                            "coalesce(stop_reason,'') FROM episode ORDER BY rowid");
    std::vector<StoredEpisode> list;
    while (query.executeStep()) {
        StoredEpisode item;
        item.uid = uid_of(query.getColumn(0));
        item.task_id = query.getColumn(1).getString();
        item.group_key = query.getColumn(2).getString();
        item.repetition = query.getColumn(3).getInt();
        item.mode = query.getColumn(4).getString();
        item.status = query.getColumn(5).getString();
        item.stop_reason = query.getColumn(6).getString();
        list.push_back(std::move(item));
    }
    return list;
}

std::string Reader::blob(std::string_view hash_hex) const {
    return impl_->blob(from_hex(hash_hex));
}

std::string Reader::verify() const {
    try {
        const std::string check = impl_->db->execAndGet("PRAGMA integrity_check(1)").getString();
        if (check != "ok") return check;
        for (const StoredTrajectory& trajectory : trajectories()) token_log(trajectory.record.uid);
        SQLite::Statement hashes(*impl_->db, "SELECT hash FROM blob");
        while (hashes.executeStep()) impl_->blob(bytes(hashes.getColumn(0)));
        return {};
    } catch (const std::exception& error) {
        return error.what();
    }
}

}  // namespace skein::agent::store
