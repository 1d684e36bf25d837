// Leaving real root. bwrap started by real root keeps /proc/sys writable inside, and real root
// ignores RLIMIT_NPROC, so nothing of a run may happen as uid 0.
//
// Which uid: the owner of the workspace when that is not root; otherwise a uid of this run alone,
// far above what systems hand out, to which root's files in a writable workspace are given. They
// stay that uid's: the next run on the same workspace uses it again. Root can read them anyway.
//
// The new identity cannot walk through directories such as /root, so the sources of mounts are
// first bound below a private tmpfs in a mount namespace of this process.

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

constexpr uid_t kFirstRunUid = 1'900'000'000;
constexpr char kStage[] = "/mnt";

/// Uid 0 here is uid 0 of the machine (or at least of a whole-range container).
bool root_is_real() {
    FILE* map = fopen("/proc/self/uid_map", "re");
    if (map == nullptr) return true;
    unsigned long inside = 1, outside = 1, count = 0;
    const int fields = fscanf(map, "%lu %lu %lu", &inside, &outside, &count);
    fclose(map);
    return fields != 3 || outside == 0 || count > kFirstRunUid;
}

std::string failed(const std::string& what) {
    return what + ": " + strerror(errno);
}

bool binds(const PlanMount& mount) {
    return mount.kind == PlanMount::read_only || mount.kind == PlanMount::writable ||
           mount.kind == PlanMount::device;
}

bool bind_source(int source, const std::string& place) {
    struct stat info {};
    if (fstat(source, &info) != 0) return false;
    if (S_ISDIR(info.st_mode)) {
        if (mkdir(place.c_str(), 0755) != 0) return false;
    } else {
        const int file = open(place.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        if (file < 0) return false;
        close(file);
    }
    const std::string link = "/proc/self/fd/" + std::to_string(source);
    return mount(link.c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
}

/// Rewrites the sources of `plan` to places anybody can reach.
std::string stage_sources(Plan& plan) {
    if (unshare(CLONE_NEWNS) != 0) {
        // Root without the right to mount: sources must be reachable as they are.
        return {};
    }
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return failed("cannot make the mounts private");
    // Opened before the tmpfs, which may cover some of them.
    std::vector<int> sources;
    std::vector<PlanMount> kept;
    for (const PlanMount& mount : plan.mounts) {
        int fd = -1;
        if (binds(mount)) {
            fd = open(mount.source.c_str(), O_PATH | O_CLOEXEC);
            if (fd < 0 && mount.optional != 0 && errno == ENOENT) continue;
            if (fd < 0) return failed("cannot open the mount source " + mount.source);
        }
        sources.push_back(fd);
        kept.push_back(mount);
    }
    plan.mounts = std::move(kept);
    const int workspace =
        plan.workspace.empty() ? -1 : open(plan.workspace.c_str(), O_PATH | O_CLOEXEC);
    if (mount("skein", kStage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0)
        return failed("cannot mount a tmpfs on /mnt");
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (sources[i] < 0) continue;
        const std::string place = std::string(kStage) + "/" + std::to_string(i);
        if (!bind_source(sources[i], place)) return failed("cannot bind " + plan.mounts[i].source);
        plan.mounts[i].source = place;
        close(sources[i]);
    }
    if (workspace >= 0) {
        plan.workspace = std::string(kStage) + "/workspace";
        if (!bind_source(workspace, plan.workspace)) return failed("cannot bind the workspace");
        close(workspace);
    }
    return {};
}

/// The streams and passed descriptors belong to the identity that uses them: otherwise opening
/// /dev/stderr inside would be refused. Files that have a name elsewhere are not ours to give.
void give_streams(const Plan& plan, uid_t uid, gid_t gid) {
    const int last = kFirstPassedFd + static_cast<int>(plan.descriptor_targets.size());
    for (int fd = 0; fd < last; ++fd) {
        struct stat info {};
        if (fd == kControlFd || fd == kPlanFd || fstat(fd, &info) != 0) continue;
        const bool nameless = S_ISFIFO(info.st_mode) || info.st_nlink == 0;
        if (nameless && fchown(fd, uid, gid) != 0) continue;
    }
}

struct Identity {
    uid_t uid = 0;
    gid_t gid = 0;
};

Identity choose_identity(const Plan& plan) {
    const auto own = kFirstRunUid + static_cast<uid_t>(getpid());
    Identity identity{own, own};
    struct stat info {};
    if (!plan.workspace.empty() && stat(plan.workspace.c_str(), &info) == 0 && info.st_uid != 0) {
        identity.uid = info.st_uid;
        identity.gid = info.st_gid != 0 ? info.st_gid : info.st_uid;
    }
    return identity;
}

/// Runs that start at once on a workspace of root must agree on one identity: the first one in
/// takes the directory, the others find it taken.
Identity claim_workspace(const Plan& plan) {
    Identity identity = choose_identity(plan);
    if (plan.workspace_writable == 0 || identity.uid < kFirstRunUid) return identity;
    const int directory = open(plan.workspace.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    flock(directory, LOCK_EX);
    identity = choose_identity(plan);
    struct stat info {};
    if (fstat(directory, &info) == 0 && info.st_uid == 0 &&
        fchown(directory, identity.uid, identity.gid) != 0)
        identity = choose_identity(plan);
    close(directory);
    return identity;
}

std::string check_readable(const Plan& plan) {
    for (const PlanMount& mount : plan.mounts) {
        if (!binds(mount) || mount.kind == PlanMount::device) continue;
        struct stat info {};
        if (stat(mount.source.c_str(), &info) != 0 && errno == EACCES)
            return "mount source " + mount.source +
                   " cannot be reached by the unprivileged sandbox user; place it where every user "
                   "can go, or give this process CAP_SYS_ADMIN";
        if (S_ISDIR(info.st_mode) && access(mount.source.c_str(), R_OK | X_OK) != 0 &&
            errno == EACCES)
            return "the directory mounted at " + mount.target +
                   " is not readable by the unprivileged sandbox user; chmod 755 it";
    }
    return {};
}

}  // namespace

std::string become_unprivileged(Plan& plan) {
    if (geteuid() != 0 || !root_is_real()) return {};
    const Identity identity = claim_workspace(plan);
    if (plan.workspace_writable != 0)
        if (const int error = give_tree(plan.workspace, identity.uid, identity.gid); error != 0) {
            errno = error;
            return failed("cannot give the workspace " + plan.workspace + " to uid " +
                          std::to_string(identity.uid));
        }
    if (!plan.private_tmp.empty()) give_tree(plan.private_tmp, identity.uid, identity.gid);
    if (plan.isolate != 0)
        if (std::string problem = stage_sources(plan); !problem.empty()) return problem;
    give_streams(plan, identity.uid, identity.gid);
    if (setgroups(0, nullptr) != 0 || setresgid(identity.gid, identity.gid, identity.gid) != 0 ||
        setresuid(identity.uid, identity.uid, identity.uid) != 0)
        return failed("cannot leave root for uid " + std::to_string(identity.uid) +
                      " (the container must map it, or start skein as an ordinary user)");
    return plan.isolate != 0 ? check_readable(plan) : std::string();
}

}  // namespace skein::sandbox::runner
