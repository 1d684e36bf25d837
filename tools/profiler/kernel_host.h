#pragma once
// A kernel in its own sandboxed process, called by hand-shake and timed from outside.

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/profiler/kernel_host_protocol.h"
#include "tools/profiler/sandbox_thread.h"
#include "tools/profiler/shared_memory.h"

namespace skein::tools {

struct HostBuffer {
    std::size_t capacity = 0;  ///< bytes
    bool writable = false;
};

struct KernelHostOptions {
    std::filesystem::path program;  ///< `skein-kernel-host`
    std::filesystem::path library;  ///< defines skein_call
    std::vector<HostBuffer> buffers;
    bool deny_threads = true;
    std::uint64_t memory_bytes = 4ULL << 30;
    std::chrono::milliseconds load_timeout{10000};
};

struct HostCall {
    std::vector<std::uint64_t> offsets, bytes;  ///< where each buffer starts; how much is used
    std::vector<std::int64_t> sizes;
    std::uint32_t repeat = 1;
    std::chrono::milliseconds timeout{10000};
    /// Runs after the host is ready and before the clock starts.
    std::function<void()> before_start;
};

/// What a look at the process after the call shows. Every field speaks against it.
struct HostAudit {
    double excess_cpu_ns = 0;      ///< processor time from sleep to sleep beyond wake-up to `done`
    bool stamps_disagree = false;  ///< by the host's own account `done` came early
    int threads = 1;
};

/// The host ended or did not answer. `message` is fit for the model.
struct HostFailure : std::runtime_error {
    enum class Kind { exited, crashed, timed_out, load_failed, infrastructure };
    HostFailure(Kind failure_kind, const std::string& message)
        : std::runtime_error(message), kind(failure_kind) {}
    Kind kind;
    host::Fault fault = host::Fault::none;
    int fault_buffer = -1;
};

/// One host process. Threads: one at a time.
class KernelHost {
  public:
    /// Starts it and waits until the library is loaded. Throws: HostFailure.
    KernelHost(SandboxThread& thread, KernelHostOptions options);
    ~KernelHost();
    KernelHost(const KernelHost&) = delete;

    /// Our writable view of a buffer, whatever the host may do with its own.
    std::span<std::byte> buffer(std::size_t index) { return memory_[index].bytes(); }
    /// One call; returns the nanoseconds from our `go` to our sight of `done`
    /// (CLOCK_MONOTONIC_RAW). Read the outputs at once, then call `audit`. Throws: HostFailure.
    double call(const HostCall& request);
    /// Waits until the process sleeps again and says what it did meanwhile. Throws: HostFailure.
    HostAudit audit();

  private:
    void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                  std::chrono::milliseconds timeout, bool spin);
    [[noreturn]] void fail_finished();
    double cpu_ns() const;
    bool asleep() const;

    SandboxThread& thread_;
    KernelHostOptions options_;
    SharedMemory orders_memory_, answers_memory_;
    host::Orders* orders_;
    host::Answers* answers_;
    std::vector<SharedMemory> memory_;
    std::shared_ptr<RunningCommand> running_;
    clockid_t cpu_clock_ = 0;
    int stat_fd_ = -1;
    std::uint32_t sequence_ = 0;
    double cpu_asleep_ns_ = 0, woken_ns_ = 0, done_ns_ = 0;
    std::uint64_t go_tsc_ = 0, done_tsc_ = 0;
};

}  // namespace skein::tools
