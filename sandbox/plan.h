#pragma once
// What one run needs, as data: written by the library, read by `skein-sandbox-runner` outside and
// by its init inside. Travels in a sealed memory file, so nothing of it shows on a command line.
//
// Format: fields in declaration order. Numbers are 8 bytes, little-endian; a string is its length
// and its bytes; a list is its length and its elements. Both ends are built together; the magic
// number refuses a runner of another build.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::sandbox {

/// One step of building the file system, in order. Sources are on the host.
struct PlanMount {
    enum Kind : std::uint64_t {
        read_only,
        writable,
        device,
        tmpfs,
        symlink,
        file,
        proc,
        dev,
        seal
    };
    std::uint64_t kind = read_only;
    std::string source;  ///< a path; the link text for symlink; the content for file
    std::string target;
    std::uint64_t bytes = 0;  ///< size of a tmpfs
    std::uint64_t optional = 0;
};

struct Plan {
    std::string bwrap;
    std::vector<PlanMount> mounts;
    std::string workspace;  ///< on the host; empty: none
    std::uint64_t workspace_writable = 0;
    std::vector<std::string> argv;
    std::vector<std::string> environment;  ///< NAME=value
    std::string working_directory;
    std::vector<std::uint64_t> descriptor_targets;  ///< numbers inside, in the order passed
    std::vector<std::string> landlock_writable;     ///< directories inside the command may change
    std::vector<std::string> landlock_readable;     ///< only without namespaces: what it may read
    std::string private_tmp;                        ///< only without namespaces: its TMPDIR
    std::uint64_t isolate = 1;                      ///< 0: no namespaces, Landlock and seccomp only
    std::uint64_t disable_userns = 1;  ///< also forbid nesting by sysctl of the new namespace
    std::uint64_t allow_ptrace = 1;
    std::uint64_t deny_threads = 0;
    std::uint64_t wall_ms = 0, cpu_ms = 0;
    std::uint64_t memory_bytes = 0, pids = 0, file_bytes = 0, disk_bytes = 0;
};

std::string encode_plan(const Plan& plan);
/// Returns false when the bytes are not a whole plan of this build.
bool decode_plan(std::string_view bytes, Plan& plan);

/// Numbers of the runner's descriptors at its start.
constexpr int kControlFd = 3;
constexpr int kPlanFd = 4;
constexpr int kFirstPassedFd = 5;
/// Targets of passed descriptors are below this, so that private ones can live above.
constexpr int kPrivateFd = 256;

/// Library to runner: one of these bytes a packet. A closed socket means kill, too.
enum class Order : std::uint8_t { kill = 1, kill_output_limit = 2 };

/// Runner to library: packets on the control socket; `detail` text follows the struct.
struct Report {
    enum Kind : std::uint32_t { started = 1, finished = 2 };
    std::uint32_t kind = 0;
    std::uint32_t outcome = 0;  ///< sandbox::Outcome
    std::int32_t host_pid = 0;  ///< started: the command, as the host sees it
    std::int32_t exit_code = -1;
    std::int32_t signal = 0;
    std::uint32_t left_processes = 0;
    std::uint64_t wall_us = 0, cpu_us = 0, peak_rss_bytes = 0;
};

/// Init (inside) to runner (outside), on a private socket.
struct InitReport {
    enum Kind : std::uint32_t { hello = 1, command = 2, executed = 3, refused = 4, finished = 5 };
    std::uint32_t kind = 0;
    std::int32_t error = 0;  ///< errno of `refused`
    std::int32_t wait_status = 0;
    std::uint32_t left_processes = 0;
    std::uint64_t wall_us = 0, cpu_us = 0, peak_rss_bytes = 0;
    char step[64] = {};  ///< what was refused
};

}  // namespace skein::sandbox
