#include "model/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/error.h"
#include "model/expect.h"
#include "model/hash.h"
#include "model/runtime.h"
#include "model/snapshot.h"

namespace skein::model {

struct Session::Impl {
    std::shared_ptr<Runtime> runtime;
    int max_context;
    BlockTable table;
    Tokens tokens{};  ///< always table.size() of them
    std::vector<float> values{};
    bool current = false;  ///< `values` are the logits after the last token
    ChoiceRecording recording = ChoiceRecording::digest;
    ChoiceRecorder recorder{};

    int size() const { return static_cast<int>(tokens.size()); }

    void check(std::span<const Token> added, std::size_t kept) const {
        if (kept + added.size() > static_cast<std::size_t>(max_context))
            throw Error(fmt::format("session: {} tokens do not fit the context of {}",
                                    kept + added.size(), max_context));
        const Token vocab_size = runtime->config().vocab_size;
        const auto bad = std::find_if(added.begin(), added.end(),
                                      [&](Token id) { return id < 0 || id >= vocab_size; });
        if (bad != added.end())
            throw Error(fmt::format(
                "session: token {} at position {} is outside the vocabulary of {}", *bad,
                kept + static_cast<std::size_t>(bad - added.begin()), vocab_size));
    }

    void check_blocks(int first, int last) const {
        const int most = size() == 0 ? 0 : (size() - 1) / kBlockTokens;
        if (first < 0 || first > last || last > most)
            throw Error(
                fmt::format("session: blocks {} to {} cannot be evicted or restored; "
                            "expected a range within 0 to {} (the open block stays)",
                            first, last, most));
    }

    /// What the engine evaluates for these tokens, and where its results go.
    Sequence sequence(std::span<const Token> added, int start, bool with_logits) {
        Sequence sequence;
        sequence.tokens = added;
        sequence.start = start;
        sequence.kv = &table;
        if (with_logits) sequence.logits = values;
        sequence.choices = &recorder;
        sequence.all_choices = recording == ChoiceRecording::all;
        recorder.logging = recording != ChoiceRecording::digest;
        recorder.digest.restart();
        recorder.digest_position = start + static_cast<int>(added.size()) - 1;
        return sequence;
    }

    void make_room(std::size_t n) {
        table.reserve(size() + static_cast<int>(n));
        tokens.reserve(tokens.size() + n);
    }

    void append_evaluated(std::span<const Token> added, bool with_logits) {
        tokens.insert(tokens.end(), added.begin(), added.end());
        table.advance(size());
        recorder.log.commit();
        current = with_logits;
    }

    /// Evaluates and appends at most one chunk of checked tokens.
    void append(std::span<const Token> added, bool with_logits) {
        make_room(added.size());
        current = false;
        const Sequence one = sequence(added, size(), with_logits);
        runtime->evaluate({&one, 1});
        append_evaluated(added, with_logits);
    }

    void truncate(int position) {
        if (position == size()) return;
        table.truncate(position);
        tokens.resize(static_cast<std::size_t>(position));
        recorder.log.truncate(position);
        current = false;
    }

    /// Keys and values of the last token are stored already: only its logits are computed again.
    void refresh() {
        if (current) return;
        const Sequence one = sequence(std::span(tokens).last(1), size() - 1, true);
        recorder.log.truncate(size() - 1);
        runtime->evaluate({&one, 1});
        recorder.log.commit();
        current = true;
    }
};

Session make_session(std::shared_ptr<Runtime> runtime, int max_context, ChoiceRecording recording) {
    BlockTable table = runtime->new_table();
    const auto vocab_size = static_cast<std::size_t>(runtime->config().vocab_size);
    auto impl = std::make_unique<Session::Impl>(
        Session::Impl{std::move(runtime), max_context, std::move(table)});
    impl->recording = recording;
    impl->values.resize(vocab_size);
    return Session(std::move(impl));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

SyncReport Session::sync(std::span<const Token> tokens, PrefillProgress* progress) {
    const auto [mine, theirs] =
        std::mismatch(impl_->tokens.begin(), impl_->tokens.end(), tokens.begin(), tokens.end());
    const auto common = static_cast<std::size_t>(mine - impl_->tokens.begin());
    std::span<const Token> rest = tokens.subspan(common);
    impl_->check(rest, common);
    impl_->truncate(static_cast<int>(common));
    SyncReport report;
    report.reused = static_cast<int>(common);
    const int total = static_cast<int>(rest.size());
    const auto chunk = static_cast<std::size_t>(impl_->runtime->prefill_chunk());
    while (!rest.empty()) {
        const std::size_t n = std::min(chunk, rest.size());
        impl_->append(rest.first(n), n == rest.size());
        rest = rest.subspan(n);
        report.evaluated += static_cast<int>(n);
        if (progress != nullptr && !progress->on_progress(report.evaluated, total)) break;
    }
    return report;
}

void Session::decode(Token token) {
    const std::span<const Token> one(&token, 1);
    impl_->check(one, impl_->tokens.size());
    impl_->append(one, true);
}

Logits Session::logits() const {
    expect(impl_->size() > 0, "logits need at least one token");
    impl_->refresh();
    return impl_->values;
}

void Session::rewind(int position) {
    if (position < 0 || position > impl_->size())
        throw Error(fmt::format("session: cannot rewind to position {}; expected 0 to {}", position,
                                impl_->size()));
    impl_->truncate(position);
}

Session Session::fork() const {
    auto other =
        std::make_unique<Impl>(Impl{impl_->runtime, impl_->max_context, impl_->table.fork()});
    other->tokens = impl_->tokens;
    other->values = impl_->values;
    other->current = impl_->current;
    other->recording = impl_->recording;
    other->recorder = impl_->recorder;
    return Session(std::move(other));
}

int Session::size() const {
    return impl_->size();
}
std::span<const Token> Session::tokens() const {
    return impl_->tokens;
}
int Session::max_context() const {
    return impl_->max_context;
}
std::size_t Session::kv_bytes() const {
    return impl_->table.bytes();
}

void Session::save(const std::filesystem::path& path, std::span<const std::byte> extra) const {
    const BlockTable& table = impl_->table;
    Snapshot snapshot;
    snapshot.fingerprint = impl_->runtime->weights().fingerprint;
    snapshot.numerics = impl_->runtime->numerics_version();
    snapshot.block_bytes = table.layout().block_bytes();
    snapshot.tokens = impl_->tokens;
    snapshot.evicted.assign(table.evicted_pages().begin(),
                            table.evicted_pages().begin() + table.used_blocks());
    if (impl_->current) {
        snapshot.logits = impl_->values;
        snapshot.choice_digest = impl_->recorder.digest.value();
    }
    snapshot.extra.assign(extra.begin(), extra.end());
    std::vector<const std::byte*> blocks;
    for (int i = 0; i < table.used_blocks(); ++i) blocks.push_back(table.block(i));
    // What lies behind the last token may be from another timeline: it is not written.
    std::vector<std::byte> open;
    if (impl_->size() % kBlockTokens != 0) {
        open.resize(snapshot.block_bytes);
        table.layout().copy_head(blocks.back(), open.data(), impl_->size() % kBlockTokens);
        blocks.back() = open.data();
    }
    write_snapshot(path, snapshot, blocks);
}

Session load_session(std::shared_ptr<Runtime> runtime, const std::filesystem::path& path,
                     int max_context, ChoiceRecording recording, std::vector<std::byte>* extra) {
    const SnapshotReader reader(path);
    const Snapshot& snapshot = reader.snapshot();
    const auto refuse = [&](const std::string& why) {
        throw Error(fmt::format("snapshot '{}' {}", path.string(), why));
    };
    if (snapshot.fingerprint != runtime->weights().fingerprint)
        refuse("belongs to another model; load the model that it was saved with");
    if (snapshot.numerics != runtime->numerics_version())
        refuse(
            fmt::format("was written with numerics '{}', this engine computes with '{}'; use the "
                        "same KV types and version, or evaluate the tokens again",
                        snapshot.numerics, runtime->numerics_version()));
    if (snapshot.block_bytes != runtime->layout().block_bytes())
        refuse(fmt::format("has blocks of {} bytes, expected {}", snapshot.block_bytes,
                           runtime->layout().block_bytes()));
    const auto vocab_size = static_cast<std::size_t>(runtime->config().vocab_size);
    if (!snapshot.logits.empty() && snapshot.logits.size() != vocab_size)
        refuse(fmt::format("has {} logits, expected {}", snapshot.logits.size(), vocab_size));
    Session session = make_session(std::move(runtime), max_context, recording);
    Session::Impl& impl = *session.impl_;
    impl.check(snapshot.tokens, 0);
    impl.table.load(static_cast<int>(snapshot.tokens.size()), snapshot.evicted,
                    [&](int index, std::byte* block) { reader.read_block(index, block); });
    impl.tokens = snapshot.tokens;
    if (!snapshot.logits.empty()) {
        impl.values = snapshot.logits;
        impl.recorder.digest.set(snapshot.choice_digest);
        impl.current = true;
    }
    if (extra != nullptr) *extra = snapshot.extra;
    return session;
}

void Session::fill_synthetic(int tokens, std::uint64_t seed) {
    const int first = impl_->size();
    if (tokens <= first) return;
    Tokens added(static_cast<std::size_t>(tokens - first));
    std::uint64_t state = seed;
    for (Token& token : added)
        token = static_cast<Token>(next_random(state) %
                                   static_cast<std::uint64_t>(impl_->runtime->config().vocab_size));
    impl_->check(added, impl_->tokens.size());
    impl_->make_room(added.size());
    impl_->runtime->fill_synthetic(impl_->table, first, tokens, seed);
    impl_->append_evaluated(added, false);
}

int Session::shared_blocks(const Session& other) const {
    return impl_->table.shared_blocks(other.impl_->table);
}

void Session::evict(int first, int last) {
    impl_->check_blocks(first, last);
    impl_->table.evict(first, last);
}

void Session::restore(int first, int last) {
    impl_->check_blocks(first, last);
    impl_->table.restore(first, last);
}

std::uint64_t Session::choice_digest() const {
    expect(impl_->size() > 0, "choices need at least one token");
    impl_->refresh();
    return impl_->recorder.digest.value();
}

const ChoiceLog* Session::choices() const {
    return impl_->recording == ChoiceRecording::digest ? nullptr : &impl_->recorder.log;
}

void decode_together(std::span<Session* const> sessions, std::span<const Token> tokens) {
    expect(sessions.size() == tokens.size() && !sessions.empty() &&
               sessions.size() <= static_cast<std::size_t>(kMostBatchedSessions),
           "one token for each of at most 64 sessions");
    std::vector<Sequence> sequences;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        Session::Impl& impl = *sessions[i]->impl_;
        expect(impl.runtime == sessions[0]->impl_->runtime, "sessions of one engine");
        impl.check(tokens.subspan(i, 1), impl.tokens.size());
        impl.make_room(1);
    }
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        Session::Impl& impl = *sessions[i]->impl_;
        impl.current = false;
        sequences.push_back(impl.sequence(tokens.subspan(i, 1), impl.size(), true));
    }
    sessions[0]->impl_->runtime->evaluate(sequences);
    for (std::size_t i = 0; i < sessions.size(); ++i)
        sessions[i]->impl_->append_evaluated(tokens.subspan(i, 1), true);
}

}  // namespace skein::model
