#pragma once
// Files of one task, reached by paths that cannot leave the root. PUBLIC.
// Every open goes through openat2(RESOLVE_BENEATH); see design notes at the top of workspace.cpp.

#include <cstdint>
#include <filesystem>
#include <optional>
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
    /// Throws: WorkspaceError when `root` is not a directory.
    explicit Workspace(std::filesystem::path root);
    ~Workspace();
    Workspace(Workspace&&) noexcept;
    Workspace(const Workspace&) = delete;

    const std::filesystem::path& root() const;
    /// Whole regular file. Throws: WorkspaceError (escape, link out, FIFO, larger than max_bytes).
    std::string read(std::string_view path, std::uint64_t max_bytes = 64ULL << 20) const;
    /// Replaces or creates atomically, keeping the mode; makes parent directories.
    void write(std::string_view path, std::string_view bytes) const;
    bool exists(std::string_view path) const;
    struct Entry {
        std::string name;  ///< relative to the listed directory for `list`, to the root for `walk`
        char kind = 'f';   ///< f, d, l (link), o (other)
        std::uint64_t bytes = 0;
    };
    std::vector<Entry> list(std::string_view path) const;  ///< sorted by name
    /// All entries below, depth first, sorted, at most max_entries, never through links.
    std::vector<Entry> walk(std::string_view path, std::size_t max_entries) const;

  private:
    std::filesystem::path root_;
    int fd_ = -1;
};

}  // namespace skein::tools
