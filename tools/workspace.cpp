#include "tools/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tools/beneath.h"
#include "tools/text.h"
#include "tools/workspace_stamp.h"

// Design. The workspace is a directory that sandboxed commands may change at any moment, so a path
// that was checked is not the path that is opened. Therefore nothing here checks text and opens
// later: the kernel resolves every path from one descriptor of the root and refuses to leave it
// (openat2, RESOLVE_BENEATH), and everything after that works on descriptors. The last component is
// never followed when it is a link; the message names the link and its target instead. Opens do not
// block (FIFO) and do not take a terminal; only regular files are read, up to a size.
// Absolute links are refused even when they point inside, as RESOLVE_BENEATH does.

namespace skein::tools {
namespace {

constexpr std::size_t kMaxDirectoryEntries = 100000;
constexpr int kMaxDepth = 128;

char kind_of(mode_t mode) {
    if (S_ISREG(mode)) return 'f';
    if (S_ISDIR(mode)) return 'd';
    return S_ISLNK(mode) ? 'l' : 'o';
}

std::string read_all(const Fd& fd, std::uint64_t size, std::uint64_t max_bytes,
                     const std::string& path) {
    std::string bytes(size, '\0');
    std::size_t used = 0;
    for (;;) {
        // One byte beyond the size shows whether the file grew meanwhile.
        if (used == bytes.size()) bytes.resize(used + std::max<std::size_t>(1, used / 8));
        const ssize_t n = ::read(fd.get(), bytes.data() + used, bytes.size() - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            throw WorkspaceError(
                fmt::format("cannot read {}: {}", quote(path, 300), std::strerror(errno)));
        }
        if (n == 0) break;
        used += static_cast<std::size_t>(n);
        if (used > max_bytes) {
            throw WorkspaceError(
                fmt::format("cannot read {}: it grew beyond {} bytes while being read",
                            quote(path, 300), max_bytes));
        }
    }
    bytes.resize(used);
    return bytes;
}

// Entries of an open directory, unsorted. One descriptor, closed on return.
std::vector<Workspace::Entry> read_directory(Fd fd, const std::string& path) {
    DIR* stream = ::fdopendir(::dup(fd.get()));
    if (!stream)
        throw WorkspaceError("cannot list " + quote(path, 300) + ": " + std::strerror(errno));
    const std::unique_ptr<DIR, int (*)(DIR*)> guard(stream, ::closedir);
    std::vector<Workspace::Entry> entries;
    while (const dirent* item = ::readdir(stream)) {
        const std::string_view name = item->d_name;
        if (name == "." || name == "..") continue;
        if (entries.size() == kMaxDirectoryEntries) {
            throw WorkspaceError(fmt::format("cannot list {}: more than {} entries",
                                             quote(path, 300), kMaxDirectoryEntries));
        }
        struct stat info {};
        if (::fstatat(fd.get(), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;  // just gone
        entries.push_back(
            {std::string(name), kind_of(info.st_mode), static_cast<std::uint64_t>(info.st_size)});
    }
    return entries;
}

}  // namespace

Workspace::Workspace(std::filesystem::path root) {
    std::error_code error;
    root_ = std::filesystem::canonical(root, error);
    if (error)
        throw WorkspaceError(fmt::format("workspace {}: {}", root.string(), error.message()));
    fd_ = ::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0) {
        throw WorkspaceError(fmt::format("workspace {}: {}", root_.string(), std::strerror(errno)));
    }
    if (!open_beneath(fd_, ".", O_PATH | O_DIRECTORY)) {
        const int why = errno;
        ::close(fd_);
        throw WorkspaceError(
            fmt::format("workspace {}: openat2 fails ({}); it needs Linux 5.6 and a seccomp "
                        "profile that allows it",
                        root_.string(), std::strerror(why)));
    }
}

Workspace::~Workspace() {
    if (fd_ >= 0) ::close(fd_);
}

Workspace::Workspace(Workspace&& other) noexcept
    : root_(std::move(other.root_)), fd_(std::exchange(other.fd_, -1)) {}

Workspace::File Workspace::read_file(std::string_view path, std::uint64_t max_bytes) const {
    const std::string name = relative_path(root_.native(), path);
    const Fd fd = open_beneath(fd_, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!fd) throw WorkspaceError(open_failure(fd_, "read", name, errno));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) throw WorkspaceError(open_failure(fd_, "read", name, errno));
    if (S_ISDIR(info.st_mode)) {
        throw WorkspaceError(
            fmt::format("cannot read {}: it is a directory; list it", quote(name, 300)));
    }
    if (!S_ISREG(info.st_mode)) {
        throw WorkspaceError(fmt::format(
            "cannot read {}: not a regular file (socket, device or pipe)", quote(name, 300)));
    }
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (size > max_bytes) {
        throw WorkspaceError(
            fmt::format("cannot read {}: {} bytes, the limit is {}; take a part of it with a "
                        "command",
                        quote(name, 300), size, max_bytes));
    }
    return {read_all(fd, size, max_bytes, name), stamp_of(info)};
}

std::string Workspace::read(std::string_view path, std::uint64_t max_bytes) const {
    return read_file(path, max_bytes).bytes;
}

bool Workspace::exists(std::string_view path) const {
    return static_cast<bool>(
        open_beneath(fd_, relative_path(root_.native(), path), O_PATH | O_NOFOLLOW));
}

bool Workspace::is_directory(std::string_view path) const {
    return static_cast<bool>(
        open_beneath(fd_, relative_path(root_.native(), path), O_PATH | O_NOFOLLOW | O_DIRECTORY));
}

std::vector<Workspace::Entry> Workspace::list(std::string_view path) const {
    const std::string name = relative_path(root_.native(), path);
    Fd fd = open_beneath(fd_, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd) throw WorkspaceError(open_failure(fd_, "list", name, errno));
    std::vector<Entry> entries = read_directory(std::move(fd), name);
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
}

Workspace::Tree Workspace::walk(std::string_view path, std::size_t max_entries,
                                const std::function<bool(const Entry&)>& skip) const {
    const std::string top = relative_path(root_.native(), path);
    std::string prefix = top;
    while (prefix.size() > 1 && prefix.back() == '/') prefix.pop_back();
    prefix = prefix == "." ? "" : prefix + "/";

    struct Pending {
        Entry entry;
        int depth;
    };
    Tree tree;
    std::vector<Pending> stack;  // next entry last; nothing stays open between two directories
    const auto push = [&](const std::string& directory, std::vector<Entry> entries, int depth) {
        for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
            entry->name = directory + entry->name;
            stack.push_back({std::move(*entry), depth});
        }
    };
    push(prefix, list(path), 1);
    while (!stack.empty()) {
        const Pending next = std::move(stack.back());
        stack.pop_back();
        if (tree.entries.size() == max_entries) {
            tree.incomplete = fmt::format("stopped after {} entries", max_entries);
            break;
        }
        tree.entries.push_back(next.entry);
        if (next.entry.kind != 'd' || (skip && skip(next.entry))) continue;
        if (next.depth == kMaxDepth) {
            tree.incomplete = fmt::format("left out what lies deeper than {} levels", kMaxDepth);
            continue;
        }
        try {
            push(next.entry.name + "/", list(next.entry.name), next.depth + 1);
        } catch (const WorkspaceError& error) {
            tree.incomplete =
                error.what();  // unreadable, or swapped for a link since it was listed
        }
    }
    return tree;
}

}  // namespace skein::tools
