#pragma once
// One timeline of tokens over a shared Engine. PUBLIC.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "model/choices.h"
#include "model/token.h"

namespace skein::model {

class Engine;
/// Sessions that `decode_together` may advance in one pass.
inline constexpr int kMostBatchedSessions = 64;
using Logits = std::span<const float>;

/// Which choices of sparse layers and experts a session keeps.
enum class ChoiceRecording : std::uint8_t {
    digest,  ///< a hash of those behind the current logits
    steps,   ///< all of those behind logits: one entry a sampled token
    all      ///< of every token, the prompt's too
};

/// What `sync` did.
struct SyncReport {
    int reused = 0;     ///< leading tokens whose KV was already there
    int evaluated = 0;  ///< tokens evaluated now
};

/// Called between chunks of a long prefill; returning false stops it (the timeline stays valid at
/// the tokens evaluated so far).
struct PrefillProgress {
    virtual ~PrefillProgress() = default;
    virtual bool on_progress(int done, int total) = 0;
};

/// A mutable timeline. Not thread-safe; sessions of one engine may run in different threads.
/// Logits depend only on the tokens: not on chunk size, thread count, forks, rewinds or reuse.
class Session {
  public:
    struct Impl;
    explicit Session(std::unique_ptr<Impl> impl);
    ~Session();
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;

    /// Makes the timeline equal `tokens`, evaluating only what differs.
    /// Throws: Error when longer than max_context, or an id is out of range.
    SyncReport sync(std::span<const Token> tokens, PrefillProgress* progress = nullptr);
    /// Appends one token. Same bits as sync with the longer prefix.
    void decode(Token token);
    /// Logits after the last token, [vocab_size]. After a rewind they are computed again by the
    /// first call. Requires: size() > 0. Valid until the next call.
    Logits logits() const;
    /// Forgets the positions from `position` on. The logits become those of position - 1.
    /// Throws: Error when the position is outside [0, size()].
    void rewind(int position);
    /// A new timeline that shares every full block of 128 tokens. Throws: Error when KV memory is
    /// exhausted.
    Session fork() const;
    int size() const;
    std::span<const Token> tokens() const;
    int max_context() const;
    std::size_t kv_bytes() const;  ///< bytes of KV blocks this timeline references

    /// Writes the timeline to a file that Engine::load_session reads: tokens, KV, index keys, last
    /// logits, evictions and `extra` (sampler, random or grammar state of the caller).
    /// Throws: Error naming what could not be written; an older file of this name is kept then.
    void save(const std::filesystem::path& path, std::span<const std::byte> extra = {}) const;
    /// Appends pseudo-random tokens, keys and values up to `tokens`, so that speed at depth can be
    /// measured without a prefill. What is computed afterwards means nothing.
    /// Throws: Error as sync.
    void fill_synthetic(int tokens, std::uint64_t seed);
    /// How many full blocks of 128 tokens this timeline shares with another one.
    int shared_blocks(const Session& other) const;

    /// Takes the blocks of 128 tokens [first, last) out of everything that tokens evaluated from
    /// now on can attend to; positions do not move, and nothing is freed for other timelines.
    /// Throws: Error when the range is not among the full blocks before the last token's.
    void evict(int first, int last);
    /// Undoes evict for tokens evaluated from now on.
    void restore(int first, int last);

    /// Hash of the blocks and experts chosen for the last token. Requires: as logits().
    std::uint64_t choice_digest() const;
    /// What the options asked to record; null for `digest`. Valid until the next call.
    const ChoiceLog* choices() const;

    /// Appends one token to each session in one pass over the weights; the bits are those of
    /// decode(). Requires: distinct sessions of one engine, at most kMostBatchedSessions.
    /// Throws: Error as decode; no session has changed then.
    friend void decode_together(std::span<Session* const> sessions, std::span<const Token> tokens);

  private:
    friend Session load_session(std::shared_ptr<class Runtime> runtime,
                                const std::filesystem::path& path, int max_context,
                                ChoiceRecording recording, std::vector<std::byte>* extra);
    std::unique_ptr<Impl> impl_;
};

void decode_together(std::span<Session* const> sessions, std::span<const Token> tokens);

}  // namespace skein::model
