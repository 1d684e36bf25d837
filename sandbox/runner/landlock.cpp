// Landlock inside the mount namespace: a second fence around writing, and a domain that init is
// not part of, so that the command can neither trace nor signal init. Without namespaces it fences
// reading as well, because nothing else does. Source: kernel
// Documentation/userspace-api/landlock.rst. Constants newer than Debian 12's header are spelled
// out.

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

constexpr std::uint64_t kTruncate = 1ULL << 14;       // version 3
constexpr std::uint64_t kScopeAbstractUnix = 1 << 0;  // version 6
constexpr std::uint64_t kScopeSignal = 1 << 1;        // version 6

struct RulesetAttributes {
    std::uint64_t handled_access_fs;
    std::uint64_t handled_access_net;  // version 4
    std::uint64_t scoped;              // version 6
};

constexpr std::uint64_t kWriteFile = LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr std::uint64_t kChangeTree = LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                      LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                      LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                                      LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kOfFiles =
    kWriteFile | kTruncate | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
// Handled but granted nowhere.
constexpr std::uint64_t kMakeDevices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;

int allow_below(int ruleset, const std::string& path, std::uint64_t access) {
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? 0 : errno;
    struct stat info {};
    if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) access &= kOfFiles;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = access;
    rule.parent_fd = fd;
    const long rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    const int error = rc == 0 ? 0 : errno;
    close(fd);
    return error;
}

}  // namespace

int landlock_version() {
    const long version =
        syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version < 0 ? 0 : static_cast<int>(version);
}

int install_landlock(const Plan& plan) {
    const int version = landlock_version();
    if (version == 0) return ENOSYS;
    std::uint64_t changes = kWriteFile | kChangeTree;
    if (version >= 2) changes |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= 3) changes |= kTruncate;
    const std::uint64_t read = plan.isolate != 0 ? 0 : kRead;
    RulesetAttributes attributes{changes | read | kMakeDevices, 0, 0};
    std::size_t size = 8;
    if (version >= 4) size = 16;
    if (version >= 6) {
        size = sizeof attributes;
        attributes.scoped = kScopeAbstractUnix | kScopeSignal;
    }
    const int ruleset =
        static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
    if (ruleset < 0) return errno;
    int error = allow_below(ruleset, "/dev", kWriteFile | (changes & kTruncate) | read);
    for (const std::string& path : plan.landlock_readable)
        if (error == 0) error = allow_below(ruleset, path, read);
    for (const std::string& path : plan.landlock_writable)
        if (error == 0) error = allow_below(ruleset, path, changes | read);
    if (error == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) error = errno;
    close(ruleset);
    return error;
}

}  // namespace skein::sandbox::runner
