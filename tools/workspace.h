#pragma once
// Files of one task, reached by paths that cannot leave the root. PUBLIC.
// Every open goes through openat2(RESOLVE_BENEATH); see design notes at the top of workspace.cpp.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

/// A path or file that cannot be used; the message is fit for the model.
class WorkspaceError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Workspace {
  public:
    /// Throws: WorkspaceError when `root` is not a directory or the kernel lacks openat2.
    explicit Workspace(std::filesystem::path root);
    ~Workspace();
    Workspace(Workspace&&) noexcept;
    Workspace(const Workspace&) = delete;

    /// Absolute, links in it resolved: the same text that commands in the sandbox see.
    const std::filesystem::path& root() const { return root_; }

    /// What a file looked like when it was read; `write` refuses when it looks different now.
    struct Stamp {
        std::uint64_t device = 0, inode = 0, bytes = 0;
        std::int64_t modified_ns = 0, changed_ns = 0;
        bool operator==(const Stamp&) const = default;
    };
    struct File {
        std::string bytes;
        Stamp stamp;
    };
    static constexpr std::uint64_t kMaxFileBytes = 64ULL << 20;

    /// Whole regular file. Throws: WorkspaceError (escape, link, FIFO, larger than max_bytes).
    std::string read(std::string_view path, std::uint64_t max_bytes = kMaxFileBytes) const;
    File read_file(std::string_view path, std::uint64_t max_bytes = kMaxFileBytes) const;

    /// Replaces or creates atomically, keeping mode and owner; makes parent directories.
    /// Returns whether the file is new. With `expected`, throws when the file changed since.
    /// Throws: WorkspaceError (escape, link, hard link, read-only, disk full).
    bool write(std::string_view path, std::string_view bytes,
               const Stamp* expected = nullptr) const;

    bool exists(std::string_view path) const;
    bool is_directory(std::string_view path) const;

    struct Entry {
        std::string name;  ///< relative to the listed directory for `list`, to the root for `walk`
        char kind = 'f';   ///< f, d, l (link), o (other)
        std::uint64_t bytes = 0;
    };
    /// Sorted by name. Throws: WorkspaceError, also beyond 100'000 entries.
    std::vector<Entry> list(std::string_view path) const;

    struct Tree {
        std::vector<Entry> entries;
        std::string incomplete;  ///< empty, or what was left out and why
    };
    /// All entries below, depth first, sorted, at most max_entries and 128 levels, never through
    /// links. Directories for which `skip` returns true are listed but not entered.
    Tree walk(std::string_view path, std::size_t max_entries,
              const std::function<bool(const Entry&)>& skip = {}) const;

  private:
    std::filesystem::path root_;
    int fd_ = -1;
};

}  // namespace skein::tools
