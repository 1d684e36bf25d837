#pragma once
// "Run this command under these rules." PUBLIC.
//
// Every command runs in its own namespaces under a policy that is data. The sandbox's outcome is
// typed: a setup failure can never look like a failing command, and nothing survives a run.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace skein::sandbox {

/// The sandbox cannot be set up at all (no bwrap, no user namespaces). Says the remedy.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// What the probe proved from inside, weakest first.
enum class Level { none, landlock, full_noproc, full };
std::string_view to_string(Level level);

struct Mount {
    enum class Kind { read_only, writable, tmpfs, device };  ///< device: a usable device node
    Kind kind = Kind::read_only;
    std::filesystem::path source;  ///< on the host; unused for tmpfs
    std::filesystem::path target;  ///< inside, absolute
    std::uint64_t tmpfs_bytes = 0;
    bool optional = false;  ///< skip when the source does not exist
};

/// What is visible, writable and reachable. The default sees /usr and a short /etc, writes nothing.
struct SandboxPolicy {
    std::filesystem::path workspace;         ///< bound writable at `workspace_target`; may be empty
    std::filesystem::path workspace_target;  ///< default: the same path as on the host
    bool workspace_read_only = false;
    std::vector<Mount> mounts;                       ///< in addition to the base system
    std::map<std::string, std::string> environment;  ///< added to the minimal clean one
    std::uint64_t tmp_bytes = 256ULL << 20;          ///< size of /tmp and /dev/shm
    bool allow_ptrace = true;                        ///< debuggers and LeakSanitizer need it
    bool deny_threads = false;    ///< clone of threads and processes after exec fails
    Level require = Level::full;  ///< refuse to run below this level
};

struct ResourceLimits {
    std::chrono::milliseconds wall_time{120000};
    std::chrono::milliseconds cpu_time{0};  ///< 0: no limit of its own
    std::uint64_t memory_bytes = 4ULL << 30;
    int pids = 256;
    std::uint64_t file_bytes = 1ULL << 30;
    std::uint64_t disk_bytes = 4ULL << 30;     ///< growth of the workspace, polled
    std::uint64_t output_bytes = 64ULL << 20;  ///< per stream; beyond it the command is killed
    std::size_t keep_head = 64 << 10, keep_tail = 64 << 10;  ///< bytes of each stream kept
};

/// A descriptor handed to the command on purpose; everything else is closed.
struct PassedDescriptor {
    int fd = -1;      ///< ours; stays open here
    int target = -1;  ///< its number inside, >= 3
};

struct Command {
    std::vector<std::string> argv;  ///< argv[0] is looked up inside; no shell involved
    std::filesystem::path working_directory;
    std::map<std::string, std::string> environment;
    std::string input;  ///< given on stdin, then end of file
    std::vector<PassedDescriptor> descriptors;
    /// Called once the command runs, with its pid as the host sees it. A short command may be over
    /// by then; let it wait for a byte on a passed descriptor if you must look at it. What the
    /// callbacks throw kills the run and comes out of `run`.
    std::function<void(int host_pid)> on_started;
    /// Live output for screens; never needed for the result. stream is 1 or 2.
    std::function<void(int stream, std::string_view bytes)> on_output;
};

struct CapturedOutput {
    std::string head, tail;  ///< head holds everything when `dropped` is 0
    std::uint64_t total_bytes = 0;
    std::uint64_t dropped = 0;  ///< bytes between head and tail
    std::string text() const;   ///< head, a line saying what was dropped, tail
};

enum class Outcome {
    exited,
    signalled,
    timed_out,
    out_of_memory,
    output_limit,
    disk_limit,
    killed,
    setup_failed
};
std::string_view to_string(Outcome outcome);

struct ProcessResult {
    Outcome outcome = Outcome::setup_failed;
    Level level = Level::none;
    int exit_code = -1;  ///< for `exited`
    int signal = 0;      ///< for `signalled`
    std::chrono::microseconds wall_time{0}, cpu_time{0};
    std::uint64_t peak_rss_bytes = 0;
    CapturedOutput out, err;
    bool left_processes = false;  ///< background processes had to be killed at the end
    /// For setup_failed: what failed and the remedy. Also a program that cannot be executed and a
    /// policy that cannot be expressed end so: the command never ran.
    std::string detail;
    bool ok() const { return outcome == Outcome::exited && exit_code == 0; }
};

/// One line per layer for `skein doctor`.
struct ProbeLine {
    std::string layer;
    bool ok = false;
    std::string detail, remedy;
};
struct ProbeReport {
    Level level = Level::none;
    std::vector<ProbeLine> lines;
};

struct SandboxOptions {
    /// The `skein-sandbox-runner` program; empty: beside or below ../libexec/skein of this
    /// executable.
    std::filesystem::path runner;
    std::filesystem::path bwrap = "/usr/bin/bwrap";
};

/// Runs commands. Thread-safe; several runs may be in flight.
class Sandbox {
  public:
    virtual ~Sandbox() = default;
    /// Completes when the command is over and every process of it is gone.
    /// Asio cancellation kills the command and completes with Outcome::killed.
    /// As root, the command runs as the workspace's owner or, when root owns it, as a uid of its
    /// own, to which root's files in a writable workspace are given (see README.md).
    /// Throws: Error when `policy.require` cannot be met or the system is out of descriptors or
    /// processes; never runs weaker than asked.
    virtual boost::asio::awaitable<ProcessResult> run(SandboxPolicy policy, Command command,
                                                      ResourceLimits limits) = 0;
    /// What this machine can enforce, measured from inside on first use.
    virtual const ProbeReport& probe() = 0;
};

std::unique_ptr<Sandbox> make_linux_sandbox(SandboxOptions options = {});

/// Runs to the end on a private io_context; for tests, examples and blocking callers.
ProcessResult run_blocking(Sandbox& sandbox, SandboxPolicy policy, Command command,
                           ResourceLimits limits);

}  // namespace skein::sandbox
