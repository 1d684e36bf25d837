#pragma once
// A timeline in a file: tokens, KV blocks (index keys included), last logits and what the caller
// adds (sampler, random and grammar state). A restored timeline goes on as if it had never ended,
// bit for bit, without evaluating a token.
//
//   file   = magic:8 "SKEINKV2"  header_bytes:u64  header  checksum:u64
//            block_checksum:u64[n]  checksum:u64  zeros to a multiple of 4096  block[n]
//   header = fingerprint:u64 numerics:text block_bytes:u64 tokens:i32[] evicted:u8[] logits:f32[]
//            choice_digest:u64 extra:u8[]              text and arrays: count:u64, elements
//
// Little-endian. The last block's unused part is zero. Checksums: model/hash.h.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/token.h"

namespace skein::model {

struct Snapshot {
    std::uint64_t fingerprint = 0;  ///< of the model, see PackedWeights::fingerprint
    std::string numerics;
    std::uint64_t block_bytes = 0;
    Tokens tokens;
    std::vector<std::uint8_t> evicted;  ///< one flag a block
    std::vector<float> logits;          ///< after the last token; empty when not known
    std::uint64_t choice_digest = 0;
    std::vector<std::byte> extra;
};

/// Writes to a temporary name beside `path`, syncs, then renames: `path` is the old file or the new
/// one. Shapes: blocks [n] of snapshot.block_bytes. Throws: Error naming what could not be written.
void write_snapshot(const std::filesystem::path& path, const Snapshot& snapshot,
                    std::span<const std::byte* const> blocks);

/// Throws: Error for a file that is no snapshot, truncated or damaged, naming the part.
class SnapshotReader {
  public:
    explicit SnapshotReader(const std::filesystem::path& path);
    ~SnapshotReader();
    SnapshotReader(const SnapshotReader&) = delete;
    SnapshotReader& operator=(const SnapshotReader&) = delete;

    const Snapshot& snapshot() const { return snapshot_; }
    int n_blocks() const { return static_cast<int>(checksums_.size()); }
    /// Requires: 0 <= index < n_blocks(). Shapes: out [block_bytes].
    void read_block(int index, std::byte* out) const;

  private:
    std::uint64_t read_header();
    void read_table(std::uint64_t offset);
    void read_at(std::uint64_t offset, std::byte* out, std::size_t bytes, const char* what) const;
    [[noreturn]] void fail(const std::string& message) const;

    std::filesystem::path path_;
    int file_ = -1;
    std::uint64_t size_ = 0;
    std::uint64_t blocks_at_ = 0;
    Snapshot snapshot_;
    std::vector<std::uint64_t> checksums_;
};

}  // namespace skein::model
