#pragma once
// The parts of `skein-sandbox-runner`. Outer mode prepares and supervises one run from outside;
// init mode is process 1 inside; probe mode attacks its own sandbox and prints what held.
//
// The program is single-threaded, links nothing of skein but the plan, and never throws.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/plan.h"

namespace skein::sandbox::runner {

/// Numbers of sandbox::Outcome, without the library's headers.
enum class Code : std::uint32_t {
    exited,
    signalled,
    timed_out,
    out_of_memory,
    output_limit,
    disk_limit,
    killed,
    setup_failed
};

/// Where init lies inside.
constexpr char kInitPath[] = "/run/skein/init";

/// The three modes. `run` and `init` return the exit status of the program.
int run_outside();
int run_init(int argc, char** argv);
int run_probe(int argc, char** argv);

/// Leaves real root for good. Chooses the identity, gives the workspace to it, makes the sources of
/// mounts reachable for it. Returns an empty string or what failed. No effect for ordinary users.
std::string become_unprivileged(Plan& plan);

/// Arguments of bwrap for this plan, without the program name; content of files goes to new
/// descriptors, which are appended to `keep_open`.
std::vector<std::string> bwrap_arguments(const Plan& plan, std::vector<int>& keep_open);

/// Denies what no command needs. Last step before exec. Returns 0 or an errno.
int install_seccomp(const Plan& plan);

/// Write fence and scopes for this process and its children. Returns 0, an errno, or ENOSYS when
/// the kernel has no Landlock.
int install_landlock(const Plan& plan);

/// Newest Landlock version of the kernel, 0 without Landlock.
int landlock_version();

/// What a process and all its descendants use now.
struct TreeUsage {
    std::uint64_t rss_bytes = 0;
    std::uint64_t cpu_us = 0;
    std::uint64_t processes = 0;
};
/// `fair` divides shared pages among their users; exact, but slow for large processes.
TreeUsage usage_of_tree(pid_t root, bool fair = false);

/// Blocks used below a directory, without following links or leaving the file system.
std::uint64_t disk_usage(const std::string& directory);

/// Gives every root-owned file below `directory` to `uid`:`gid`, never through a link, never a
/// file that has other names elsewhere. Returns 0 or an errno.
int give_tree(const std::string& directory, uid_t uid, gid_t gid);

/// Kills every child of this process once (adopted ones included). Returns how many there were.
int kill_children();

/// A memory file holding `content`, read position at 0.
int memory_file(const std::string& content);

std::uint64_t now_us();

}  // namespace skein::sandbox::runner
