#include "tools/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "tools/text.h"
#include "tools/workspace.h"

namespace skein::tools {
namespace {

// A rename elsewhere in the tree makes openat2 answer EAGAIN; a busy writer may do that for long.
constexpr int kMaxRetries = 1000;

std::vector<std::string> names_in(int root, const std::string& directory) {
    constexpr std::size_t kMaxCandidates = 2000;
    std::vector<std::string> names;
    const Fd fd = open_beneath(root, directory, O_RDONLY | O_DIRECTORY);
    DIR* stream = fd ? ::fdopendir(::dup(fd.get())) : nullptr;
    if (!stream) return names;
    while (const dirent* entry = ::readdir(stream)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
        if (names.size() == kMaxCandidates) break;
    }
    ::closedir(stream);
    return names;
}

// The link that stopped the path, with its target: the last component, or one higher up that leads
// nowhere we go.
std::pair<std::string, std::string> first_link(int root, const std::string& path) {
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
        const std::string prefix = path.substr(0, end);
        if (!prefix.empty()) {
            const std::string target = link_target(root, prefix);
            const bool last = end == path.npos;
            if (!target.empty() && (last || !open_beneath(root, prefix, O_PATH))) {
                return {prefix, target};
            }
        }
        if (end == path.npos) return {};
    }
}

}  // namespace

Fd::~Fd() {
    if (fd_ >= 0) ::close(fd_);
}

Fd open_beneath(int root, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<__u64>(static_cast<unsigned>(flags | O_CLOEXEC));
    if (!(flags & O_PATH)) how.flags |= O_NOCTTY;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    for (int attempt = 0; attempt < kMaxRetries; ++attempt) {
        const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
        if (fd >= 0) return Fd(static_cast<int>(fd));
        if (errno != EAGAIN && errno != EINTR) break;
    }
    return Fd();
}

std::string relative_path(std::string_view root, std::string_view path) {
    if (path.find('\0') != path.npos) throw WorkspaceError("the path holds a NUL byte");
    if (path.empty() || path.front() != '/') return path.empty() ? "." : std::string(path);
    const bool inside = path.substr(0, root.size()) == root &&
                        (path.size() == root.size() || path[root.size()] == '/' || root == "/");
    if (!inside) {
        throw WorkspaceError(fmt::format(
            "{}: outside of the workspace {}; use a path relative to it", quote(path, 300), root));
    }
    path.remove_prefix(root.size());
    while (!path.empty() && path.front() == '/') path.remove_prefix(1);
    return path.empty() ? "." : std::string(path);
}

std::pair<std::string, std::string> split_path(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return {".", path};
    return {path.substr(0, slash), path.substr(slash + 1)};
}

std::string link_target(int root, const std::string& path) {
    const Fd fd = open_beneath(root, path, O_PATH | O_NOFOLLOW);
    char target[PATH_MAX];
    const ssize_t n = fd ? ::readlinkat(fd.get(), "", target, sizeof target) : -1;
    return n > 0 ? std::string(target, static_cast<std::size_t>(n)) : std::string();
}

std::string open_failure(int root, std::string_view what, const std::string& path, int error) {
    const std::string head = fmt::format("cannot {} {}: ", what, quote(path, 300));
    switch (error) {
        case ENOENT: {
            const auto [directory, name] = split_path(path);
            if (const auto [link, target] = first_link(root, path); !link.empty()) {
                return head + fmt::format("{} is a link to {}, which does not exist",
                                          quote(link, 300), quote(target, 300));
            }
            const std::string near = nearest(name, names_in(root, directory));
            const std::string shown = directory == "." ? near : directory + "/" + near;
            return head + "no such file or directory" +
                   (near.empty() ? "" : "; the nearest name there is " + shown_name(shown));
        }
        case EXDEV:
        case ELOOP: {
            const auto [link, target] = first_link(root, path);
            if (link.empty()) return head + "the path leads out of the workspace";
            const bool out = error == EXDEV;
            return head +
                   fmt::format("{} is a link to {}{}", quote(link, 300), quote(target, 300),
                               out ? ", which leads out of the workspace (absolute links always do)"
                                   : "; links are not followed, name the file itself");
        }
        case ENOTDIR:
            return head + "a part of the path is not a directory";
        case ENXIO:
        case ENODEV:
            return head + "not a regular file (socket, device or pipe)";
        case ENAMETOOLONG:
            return head + "the path or a name in it is too long";
        case EACCES:
        case EPERM:
            return head + "permission denied";
        default:
            return head + std::strerror(error);
    }
}

}  // namespace skein::tools
