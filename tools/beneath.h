#pragma once
// Opening what lies beneath a directory descriptor, and nothing else. Internal to Workspace.

#include <string>
#include <string_view>
#include <utility>

struct stat;

namespace skein::tools {

/// Owns a file descriptor.
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd();
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

/// openat2 with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS; invalid with errno set on failure.
Fd open_beneath(int root, const std::string& path, int flags);

/// The text of `path` relative to `root`: "" and "." are the root itself, an absolute path must
/// start with the root's own text. Throws: WorkspaceError for NUL bytes and other absolute paths.
std::string relative_path(std::string_view root, std::string_view path);

/// "dir/name" to {"dir", "name"}, "name" to {".", "name"}.
std::pair<std::string, std::string> split_path(const std::string& path);

/// The target of the link at `path` beneath `root`, or empty when it is no link.
std::string link_target(int root, const std::string& path);

/// The sentence for a failed open: what, where, why, what to do; names link and target.
/// `error` is the errno of the attempt.
std::string open_failure(int root, std::string_view what, const std::string& path, int error);

}  // namespace skein::tools
