#include "model/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "model/cpu/kernels.h"
#include "model/error.h"
#include "model/hash.h"

namespace skein::model {
namespace {

constexpr char kMagic[] = "SKEINKV2";
constexpr std::size_t kMagicBytes = 8;
constexpr std::uint64_t kAlignment = 4096;
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 32U;

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
    Checksum sum;
    sum.add(bytes);
    return sum.value();
}

using Bytes = std::vector<std::byte>;

template <typename T>
void put(Bytes& out, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename Array>
void put_array(Bytes& out, const Array& values) {
    put(out, static_cast<std::uint64_t>(values.size()));
    const auto bytes = std::as_bytes(std::span(values));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

Bytes header_of(const Snapshot& s) {
    Bytes out;
    put(out, s.fingerprint);
    put_array(out, s.numerics);
    put(out, s.block_bytes);
    put_array(out, s.tokens);
    put_array(out, s.evicted);
    put_array(out, s.logits);
    put(out, s.choice_digest);
    put_array(out, s.extra);
    return out;
}

/// Reads the header's fields; every count is checked against what is left.
class Cursor {
  public:
    explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes) {}
    bool failed() const { return failed_; }
    bool at_end() const { return rest_.empty(); }

    template <typename T>
    void get(T& value) {
        if (rest_.size() < sizeof(T)) return fail();
        std::memcpy(&value, rest_.data(), sizeof(T));
        rest_ = rest_.subspan(sizeof(T));
    }
    template <typename Array>
    void get_array(Array& values) {
        std::uint64_t count = 0;
        get(count);
        constexpr std::size_t kSize = sizeof(typename Array::value_type);
        if (failed_ || count > rest_.size() / kSize) return fail();
        values.resize(count);
        if (count > 0) std::memcpy(values.data(), rest_.data(), count * kSize);
        rest_ = rest_.subspan(count * kSize);
    }

  private:
    void fail() { failed_ = true; }
    std::span<const std::byte> rest_;
    bool failed_ = false;
};

/// The file being written; removed again unless it was kept.
class Output {
  public:
    explicit Output(std::filesystem::path path) : path_(std::move(path)) {
        file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file_ < 0) fail("create");
    }
    ~Output() {
        if (file_ < 0) return;
        close(file_);
        unlink(path_.c_str());
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::write(file_, bytes.data(), bytes.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) fail("write");
            bytes = bytes.subspan(static_cast<std::size_t>(n));
        }
    }
    void keep_as(const std::filesystem::path& name) {
        if (fsync(file_) != 0) fail("sync");
        if (rename(path_.c_str(), name.c_str()) != 0) fail("rename");
        close(file_);
        file_ = -1;
    }

  private:
    [[noreturn]] void fail(const char* action) const {
        throw Error(fmt::format("snapshot: cannot {} '{}': {}", action, path_.string(),
                                std::strerror(errno)));
    }
    std::filesystem::path path_;
    int file_ = -1;
};

}  // namespace

void write_snapshot(const std::filesystem::path& path, const Snapshot& snapshot,
                    std::span<const std::byte* const> blocks) {
    const auto block_bytes = static_cast<std::size_t>(snapshot.block_bytes);
    Bytes front;
    const auto magic = std::as_bytes(std::span(kMagic, kMagicBytes));
    front.insert(front.end(), magic.begin(), magic.end());
    const Bytes header = header_of(snapshot);
    put(front, static_cast<std::uint64_t>(header.size()));
    front.insert(front.end(), header.begin(), header.end());
    put(front, checksum_of(header));
    std::vector<std::uint64_t> checksums;
    for (const std::byte* block : blocks) checksums.push_back(checksum_of({block, block_bytes}));
    const auto table = std::as_bytes(std::span(checksums));
    front.insert(front.end(), table.begin(), table.end());
    put(front, checksum_of(table));
    front.resize((front.size() + kAlignment - 1) / kAlignment * kAlignment);

    std::filesystem::path temporary = path;
    temporary += fmt::format(".{}.part", getpid());
    Output output(temporary);
    output.write(front);
    for (const std::byte* block : blocks) output.write({block, block_bytes});
    output.keep_as(path);
}

SnapshotReader::SnapshotReader(const std::filesystem::path& path) : path_(path) {
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
    try {
        struct stat status {};
        if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) fail("is not a regular file");
        size_ = static_cast<std::uint64_t>(status.st_size);
        read_table(read_header());
    } catch (...) {
        close(file_);
        throw;
    }
}

/// Returns where the header and its checksum end.
std::uint64_t SnapshotReader::read_header() {
    std::array<std::byte, kMagicBytes + 8> start{};
    read_at(0, start.data(), start.size(), "the start");
    if (std::memcmp(start.data(), kMagic, kMagicBytes) != 0)
        fail("is no snapshot of this version (expected it to start with 'SKEINKV2')");
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, start.data() + kMagicBytes, 8);
    if (header_bytes > size_ || header_bytes > kMostHeaderBytes)
        fail(fmt::format("is truncated or damaged: a header of {} bytes in a file of {}",
                         header_bytes, size_));
    Bytes header(header_bytes + 8);
    read_at(start.size(), header.data(), header.size(), "the header");
    std::uint64_t expected = 0;
    std::memcpy(&expected, header.data() + header_bytes, 8);
    header.resize(header_bytes);
    if (checksum_of(header) != expected) fail("is damaged: the header's checksum differs");
    Cursor cursor(header);
    cursor.get(snapshot_.fingerprint);
    cursor.get_array(snapshot_.numerics);
    cursor.get(snapshot_.block_bytes);
    cursor.get_array(snapshot_.tokens);
    cursor.get_array(snapshot_.evicted);
    cursor.get_array(snapshot_.logits);
    cursor.get(snapshot_.choice_digest);
    cursor.get_array(snapshot_.extra);
    const std::uint64_t blocks = (snapshot_.tokens.size() + kBlockTokens - 1) / kBlockTokens;
    if (cursor.failed() || !cursor.at_end() || snapshot_.evicted.size() != blocks)
        fail("is damaged: the header's parts do not fit together");
    return start.size() + header_bytes + 8;
}

void SnapshotReader::read_table(std::uint64_t offset) {
    const std::uint64_t blocks = snapshot_.evicted.size();
    Bytes table((blocks + 1) * 8);
    read_at(offset, table.data(), table.size(), "the checksums");
    checksums_.resize(blocks + 1);
    std::memcpy(checksums_.data(), table.data(), table.size());
    if (checksum_of(std::span(table).first(blocks * 8)) != checksums_.back())
        fail("is damaged: the checksum of the block checksums differs");
    checksums_.pop_back();
    blocks_at_ = (offset + table.size() + kAlignment - 1) / kAlignment * kAlignment;
    const std::uint64_t left = size_ > blocks_at_ ? size_ - blocks_at_ : 0;
    const bool fits = blocks == 0 || (left / blocks == snapshot_.block_bytes && left % blocks == 0);
    if (!fits)
        fail(
            fmt::format("is truncated: expected {} blocks of {} bytes after byte {}, the file has "
                        "{} bytes there",
                        blocks, snapshot_.block_bytes, blocks_at_, left));
}

SnapshotReader::~SnapshotReader() {
    close(file_);
}

void SnapshotReader::read_block(int index, std::byte* out) const {
    const auto bytes = static_cast<std::size_t>(snapshot_.block_bytes);
    read_at(blocks_at_ + static_cast<std::uint64_t>(index) * bytes, out, bytes, "a block");
    if (checksum_of({out, bytes}) != checksums_[static_cast<std::size_t>(index)])
        fail(fmt::format("is damaged: the checksum of block {} (tokens {} on) differs", index,
                         index * kBlockTokens));
}

void SnapshotReader::read_at(std::uint64_t offset, std::byte* out, std::size_t bytes,
                             const char* what) const {
    while (bytes > 0) {
        const ssize_t n = pread(file_, out, bytes, static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
        if (n == 0) fail(fmt::format("is truncated: it ends within {}", what));
        out += n;
        bytes -= static_cast<std::size_t>(n);
        offset += static_cast<std::uint64_t>(n);
    }
}

void SnapshotReader::fail(const std::string& message) const {
    throw Error(fmt::format("snapshot '{}' {}", path_.string(), message));
}

}  // namespace skein::model
