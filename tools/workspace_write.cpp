// Workspace::write. A file is always wholly old or wholly new: the bytes go to an unnamed file in
// the same directory, which then takes the name in one step. The target is looked at before and
// again right before that step, so that somebody else's change is not overwritten unseen.
// A kill leaves nothing behind while bytes are written (the file has no name yet). Only between
// naming and renaming it has a temporary name; such a leftover is held by no lock and is removed by
// the next write in that directory. Nothing is flushed to the disk: this guards against kills, not
// against power loss.
//
// Stated rules: a link is never replaced nor followed; a file with several hard links is refused,
// because replacing it would silently part the names; a read-only file (no write bit) is refused,
// also for root. New files get 0644 and, when we are root, the owner of their directory, so that
// commands in the sandbox can go on working with them.

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <random>

#include "tools/beneath.h"
#include "tools/text.h"
#include "tools/workspace.h"
#include "tools/workspace_stamp.h"

namespace skein::tools {
namespace {

constexpr std::string_view kTemporaryPrefix = ".skein-write-";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw WorkspaceError(fmt::format("cannot write {}: {}", quote(path, 300), why));
}

[[noreturn]] void refuse_errno(const std::string& path, int error) {
    if (error == ENOSPC || error == EDQUOT)
        refuse(path, "the disk is full; the old content is unchanged");
    if (error == EFBIG)
        refuse(path, "larger than the file size limit; the old content is unchanged");
    refuse(path, std::strerror(error));
}

std::string temporary_name() {
    std::random_device random;
    return fmt::format("{}{:08x}{:08x}", kTemporaryPrefix, random(), random());
}

// Opens the directory of `path`, making what is missing. Each new level is opened from the root
// again, so that a link swapped in meanwhile cannot lead out.
Fd open_parent(int root, const std::string& directory, const std::string& path) {
    Fd parent = open_beneath(root, directory, O_PATH | O_DIRECTORY);
    if (parent) return parent;
    if (errno != ENOENT) throw WorkspaceError(open_failure(root, "write", path, errno));
    parent = open_beneath(root, ".", O_PATH | O_DIRECTORY);
    for (std::size_t begin = 0; begin < directory.size();) {
        const std::size_t end = std::min(directory.find('/', begin), directory.size());
        const std::string name = directory.substr(begin, end - begin);
        if (name == "..") refuse(path, "\"..\" in a path with missing directories");
        if (!name.empty() && name != ".") {
            struct stat above {};
            const bool known = ::fstat(parent.get(), &above) == 0;
            const bool made = ::mkdirat(parent.get(), name.c_str(), 0755) == 0;
            if (!made && errno != EEXIST) refuse_errno(path, errno);
            if (made && known && ::geteuid() == 0) {
                // Through the parent's descriptor; a swapped-in link would only change itself.
                (void)!::fchownat(parent.get(), name.c_str(), above.st_uid, above.st_gid,
                                  AT_SYMLINK_NOFOLLOW);
            }
            parent = open_beneath(root, directory.substr(0, end), O_PATH | O_DIRECTORY);
            if (!parent) throw WorkspaceError(open_failure(root, "write", path, errno));
        }
        begin = end + 1;
    }
    return parent;
}

// The present target, or nothing when the name is free.
std::optional<struct stat> look_at(const Fd& parent, const std::string& name,
                                   const std::string& path) {
    struct stat info {};
    if (::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) return info;
    if (errno != ENOENT) refuse_errno(path, errno);
    return std::nullopt;
}

void check_target(const Fd& parent, const std::string& name, const struct stat& info,
                  const std::string& path) {
    if (S_ISLNK(info.st_mode)) {
        refuse(path, fmt::format("it is a link to {}; links are not followed, name the file itself",
                                 quote(link_target(parent.get(), name), 300)));
    }
    if (S_ISDIR(info.st_mode)) refuse(path, "it is a directory");
    if (!S_ISREG(info.st_mode)) refuse(path, "not a regular file (socket, device or pipe)");
    if (info.st_nlink > 1) {
        refuse(
            path,
            fmt::format("the file has {} names (hard links); writing would change or part them all",
                        info.st_nlink));
    }
    // Asked of the mode as well, because root passes every access check.
    if ((info.st_mode & 0222) == 0)
        refuse(path, fmt::format("read-only (mode {:04o})", info.st_mode & 07777));
    if (::faccessat(parent.get(), name.c_str(), W_OK, AT_EACCESS) != 0)
        refuse(path, "permission denied");
}

// Removes temporary names whose writer died: a live one holds a lock on its file.
void sweep_leftovers(int directory) {
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = copy >= 0 ? ::fdopendir(copy) : nullptr;
    if (!stream) return;
    while (const dirent* entry = ::readdir(stream)) {
        if (std::string_view(entry->d_name).substr(0, kTemporaryPrefix.size()) != kTemporaryPrefix)
            continue;
        const Fd fd(
            ::openat(directory, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0)
            ::unlinkat(directory, entry->d_name, 0);
    }
    ::closedir(stream);
}

void write_all(const Fd& fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) refuse_errno(path, errno);
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

// The new content, unnamed where the file system can do that, else under `temporary`.
struct NewFile {
    Fd fd;
    int directory = -1;
    std::string temporary;
    bool named = false;
    ~NewFile() {
        if (named) ::unlinkat(directory, temporary.c_str(), 0);
    }
};

void create(NewFile& file, const std::string& path) {
    file.fd = Fd(::openat(file.directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file.fd) {
        file.fd = Fd(::openat(file.directory, file.temporary.c_str(),
                              O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file.fd) refuse_errno(path, errno);
        file.named = true;
    }
    ::flock(file.fd.get(), LOCK_EX);
}

void name_it(NewFile& file, const std::string& name, const std::string& path) {
    if (file.named) return;
    const std::string self = fmt::format("/proc/self/fd/{}", file.fd.get());
    if (::linkat(AT_FDCWD, self.c_str(), file.directory, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        if (errno == EEXIST) refuse(path, "another process created it meanwhile; read it again");
        refuse_errno(path, errno);
    }
    file.named = name == file.temporary;
}

}  // namespace

bool Workspace::write(std::string_view given, std::string_view bytes, const Stamp* expected) const {
    const std::string path = relative_path(root_.native(), given);
    const auto [directory, name] = split_path(path);
    if (name.empty() || name == "." || name == "..") refuse(path, "the path names a directory");
    const Fd parent = open_parent(fd_, directory.empty() ? "." : directory, path);
    const std::optional<struct stat> before = look_at(parent, name, path);
    if (before) check_target(parent, name, *before, path);
    if (expected && (!before || stamp_of(*before) != *expected)) {
        refuse(path, "the file changed since it was read; read it again");
    }
    sweep_leftovers(parent.get());

    NewFile file;
    file.directory = parent.get();
    file.temporary = temporary_name();
    create(file, path);
    write_all(file.fd, bytes, path);
    struct stat owner {};
    if (before)
        owner = *before;
    else if (::fstat(parent.get(), &owner) != 0)
        refuse_errno(path, errno);
    // The owner first: changing it clears set-id bits. Only root can, others keep their own.
    (void)!::fchown(file.fd.get(), owner.st_uid, owner.st_gid);
    if (::fchmod(file.fd.get(), before ? before->st_mode & 07777 : 0644) != 0)
        refuse_errno(path, errno);

    if (!before && !file.named) {
        name_it(file, name, path);  // fails when somebody else took the name
        return true;
    }
    name_it(file, file.temporary, path);
    const std::optional<struct stat> now = look_at(parent, name, path);
    const bool same = before ? now && stamp_of(*now) == stamp_of(*before) : !now;
    if (!same) refuse(path, "the file changed while it was being written; read it again");
    if (::renameat(parent.get(), file.temporary.c_str(), parent.get(), name.c_str()) != 0) {
        refuse_errno(path, errno);
    }
    file.named = false;
    return !before;
}

}  // namespace skein::tools
