// Measuring and sweeping: process trees through /proc, directory trees with one descriptor at a
// time, so that hostile depth costs neither descriptors nor stack.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

std::string read_small_file(const std::string& path) {
    std::string text;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(n));
    close(fd);
    return text;
}

/// Own pages plus a fair share of shared ones; the plain resident size when that is not readable.
std::uint64_t proportional_bytes(pid_t process, std::uint64_t resident) {
    const std::string text = read_small_file("/proc/" + std::to_string(process) + "/smaps_rollup");
    const std::size_t field = text.find("\nPss:");
    if (field == std::string::npos) return resident;
    return strtoull(text.c_str() + field + 5, nullptr, 10) * 1024;
}

std::vector<pid_t> children_of(pid_t process) {
    std::vector<pid_t> children;
    const std::string tasks = "/proc/" + std::to_string(process) + "/task";
    DIR* directory = opendir(tasks.c_str());
    if (directory == nullptr) return children;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] == '.') continue;
        const std::string list = read_small_file(tasks + "/" + entry->d_name + "/children");
        char* end = nullptr;
        for (const char* text = list.c_str();; text = end) {
            const long pid = strtol(text, &end, 10);
            if (end == text) break;
            children.push_back(static_cast<pid_t>(pid));
        }
    }
    closedir(directory);
    return children;
}

/// Fields of /proc/PID/stat after the program name, which may hold spaces and brackets.
void add_process(pid_t process, TreeUsage& usage, bool reaped_only, bool fair) {
    const std::string text = read_small_file("/proc/" + std::to_string(process) + "/stat");
    const std::size_t bracket = text.rfind(')');
    if (bracket == std::string::npos) return;
    unsigned long user = 0, system = 0;
    long children_user = 0, children_system = 0, rss_pages = 0;
    const int fields =
        sscanf(text.c_str() + bracket + 2,
               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d %*d %*u "
               "%*u %ld",
               &user, &system, &children_user, &children_system, &rss_pages);
    if (fields != 5) return;
    static const auto tick_us = static_cast<std::uint64_t>(1000000 / sysconf(_SC_CLK_TCK));
    static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const auto ticks = static_cast<unsigned long>(children_user + children_system) +
                       (reaped_only ? 0 : user + system);
    usage.cpu_us += ticks * tick_us;
    if (!reaped_only) {
        const std::uint64_t resident = static_cast<std::uint64_t>(rss_pages) * page;
        usage.rss_bytes += fair ? proportional_bytes(process, resident) : resident;
        ++usage.processes;
    }
}

/// Walks a tree depth first holding one descriptor. Goes up through "..", and only if that is the
/// directory it came from: a tree changed under us ends the walk instead of leading it astray.
class TreeWalk {
  public:
    explicit TreeWalk(const std::string& root)
        : fd_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
    ~TreeWalk() {
        if (fd_ >= 0) close(fd_);
    }
    TreeWalk(const TreeWalk&) = delete;
    TreeWalk& operator=(const TreeWalk&) = delete;

    /// visit(directory fd, name, stat) for each entry. Returns 0 or an errno.
    template <class Visit>
    int run(Visit visit) {
        if (fd_ < 0) return errno;
        struct stat info {};
        if (fstat(fd_, &info) != 0) return errno;
        device_ = info.st_dev;
        levels_.push_back({info.st_ino, read_level(visit)});
        while (!levels_.empty()) {
            std::vector<std::string>& pending = levels_.back().pending;
            if (pending.empty()) {
                levels_.pop_back();
                if (!levels_.empty() && !go_up()) return 0;
                continue;
            }
            const std::string name = std::move(pending.back());
            pending.pop_back();
            const int below = openat(fd_, name.c_str(),
                                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (below < 0) continue;
            if (fstat(below, &info) != 0 || info.st_dev != device_) {
                close(below);
                continue;
            }
            close(fd_);
            fd_ = below;
            levels_.push_back({info.st_ino, {}});
            levels_.back().pending = read_level(visit);
        }
        return 0;
    }

  private:
    struct Level {
        ino_t inode;
        std::vector<std::string> pending;  ///< directories not entered yet
    };

    bool go_up() {
        const int above = openat(fd_, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat info {};
        if (above < 0) return false;
        close(fd_);
        fd_ = above;
        return fstat(fd_, &info) == 0 && info.st_ino == levels_.back().inode &&
               info.st_dev == device_;
    }

    template <class Visit>
    std::vector<std::string> read_level(Visit& visit) {
        std::vector<std::string> directories;
        const int copy = openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR* directory = copy < 0 ? nullptr : fdopendir(copy);
        if (directory == nullptr) {
            if (copy >= 0) close(copy);
            return directories;
        }
        while (const dirent* entry = readdir(directory)) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            struct stat info {};
            if (fstatat(fd_, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
            visit(fd_, entry->d_name, info);
            if (S_ISDIR(info.st_mode)) directories.emplace_back(entry->d_name);
        }
        closedir(directory);
        return directories;
    }

    int fd_;
    dev_t device_ = 0;
    std::vector<Level> levels_;
};

}  // namespace

std::uint64_t now_us() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1000000 +
           static_cast<std::uint64_t>(time.tv_nsec) / 1000;
}

TreeUsage usage_of_tree(pid_t root, bool fair) {
    TreeUsage usage;
    if (root <= 0) return usage;
    // The root is our own init: only what it reaped counts.
    add_process(root, usage, true, fair);
    std::vector<pid_t> open = children_of(root);
    while (!open.empty()) {
        const pid_t process = open.back();
        open.pop_back();
        add_process(process, usage, false, fair);
        for (const pid_t child : children_of(process)) open.push_back(child);
    }
    return usage;
}

int kill_children() {
    int count = 0;
    for (const pid_t child : children_of(getpid()))
        if (kill(child, SIGKILL) == 0) ++count;
    return count;
}

std::uint64_t disk_usage(const std::string& directory) {
    std::uint64_t blocks = 0;
    TreeWalk walk(directory);
    walk.run([&](int, const char*, const struct stat& info) {
        blocks += static_cast<std::uint64_t>(info.st_blocks);
    });
    return blocks * 512;
}

int give_tree(const std::string& directory, uid_t uid, gid_t gid) {
    struct stat top {};
    if (stat(directory.c_str(), &top) != 0) return errno;
    if (top.st_uid == 0 && chown(directory.c_str(), uid, gid) != 0) return errno;
    int error = 0;
    TreeWalk walk(directory);
    const int walked = walk.run([&](int fd, const char* name, const struct stat& info) {
        const bool other_names = !S_ISDIR(info.st_mode) && info.st_nlink > 1;
        if (info.st_uid != 0 || other_names) return;
        if (fchownat(fd, name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT)
            error = errno;
    });
    return walked != 0 ? walked : error;
}

}  // namespace skein::sandbox::runner
