#include "tools/profiler/kernel_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <array>
#include <ctime>
#include <new>
#include <thread>

namespace skein::tools {
namespace {

constexpr const char* kLibraryInside = "/kernel/kernel.so";
constexpr const char* kProgramInside = "/kernel/host";
constexpr int kSpinsBetweenChecks = 2048;
constexpr int kLooksBeforeYield = 20;
constexpr double kSleepWithinNs = 2e9;  ///< after a call, however busy the machine is

double now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double to_ns(std::chrono::milliseconds time) {
    return static_cast<double>(time.count()) * 1e6;
}

std::vector<sandbox::Mount> host_mounts(const KernelHostOptions& options) {
    sandbox::Mount program, library;
    program.source = options.program;
    program.target = kProgramInside;
    library.source = options.library;
    library.target = kLibraryInside;
    return {program, library};
}

HostFailure failure_of(const sandbox::ProcessResult& result) {
    using Kind = HostFailure::Kind;
    switch (result.outcome) {
        case sandbox::Outcome::exited:
            if (result.exit_code == host::kExitLoad) return {Kind::load_failed, result.err.text()};
            if (result.exit_code == host::kExitMap || result.exit_code == host::kExitUsage) {
                return {Kind::infrastructure, result.err.text()};
            }
            if (result.exit_code == 0) return {Kind::exited, "the kernel ended its process"};
            return {Kind::crashed, fmt::format("the kernel ended its process with exit code {}",
                                               result.exit_code)};
        case sandbox::Outcome::signalled:
            return {Kind::crashed,
                    fmt::format("the kernel crashed: {}", strsignal(result.signal))};
        case sandbox::Outcome::timed_out: return {Kind::timed_out, "the kernel ran out of time"};
        case sandbox::Outcome::setup_failed: return {Kind::infrastructure, result.detail};
        default:
            return {Kind::crashed, fmt::format("the kernel's process was stopped: {}",
                                               sandbox::to_string(result.outcome))};
    }
}

}  // namespace

KernelHost::KernelHost(SandboxThread& thread, KernelHostOptions options)
    : thread_(thread),
      options_(std::move(options)),
      orders_memory_("orders", host::kPageBytes, true),
      answers_memory_("answers", host::kPageBytes, false),
      orders_(new (orders_memory_.bytes().data()) host::Orders{}),
      answers_(new (answers_memory_.bytes().data()) host::Answers{}) {
    if (options_.buffers.size() > host::kMaxBuffers) {
        throw HostFailure(HostFailure::Kind::infrastructure,
                          fmt::format("a kernel has {} buffers, at most {} are supported",
                                      options_.buffers.size(), host::kMaxBuffers));
    }
    sandbox::SandboxPolicy policy;
    policy.mounts = host_mounts(options_);
    policy.deny_threads = options_.deny_threads;
    policy.allow_ptrace = false;
    sandbox::ResourceLimits limits;
    limits.wall_time = std::chrono::hours(24);  // calls have their own limits
    limits.memory_bytes = options_.memory_bytes;
    limits.output_bytes = 1 << 20;
    sandbox::Command command;
    command.argv = {kProgramInside, kLibraryInside};
    command.working_directory = "/";
    command.descriptors = {{orders_memory_.fd(), host::kOrdersFd},
                           {answers_memory_.fd(), host::kAnswersFd}};
    for (const HostBuffer& buffer : options_.buffers) {
        const std::size_t pages = (buffer.capacity + host::kPageBytes - 1) / host::kPageBytes;
        const std::size_t bytes = std::max<std::size_t>(pages, 1) * host::kPageBytes;
        command.descriptors.push_back(
            {-1, host::kFirstBufferFd + static_cast<int>(memory_.size())});
        memory_.emplace_back("buffer", bytes, !buffer.writable);
        command.descriptors.back().fd = memory_.back().fd();
        command.argv.push_back(fmt::format("{}:{}", buffer.writable ? 'w' : 'r', bytes));
    }
    running_ = thread_.start(std::move(policy), std::move(command), limits);
    try {
        wait_for(answers_->loaded, 1, options_.load_timeout, false);
        // The host may be quicker than the sandbox's own report of it.
        const double deadline = now_ns() + to_ns(options_.load_timeout);
        while (running_->pid <= 0 && !running_->finished && now_ns() < deadline) sched_yield();
        const int pid = running_->pid;
        if (pid <= 0 || clock_getcpuclockid(pid, &cpu_clock_) != 0) {
            throw HostFailure(HostFailure::Kind::infrastructure, "the kernel's process is unknown");
        }
        stat_fd_ = open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC);
        audit();
    } catch (...) {
        thread_.stop(*running_);
        if (stat_fd_ >= 0) close(stat_fd_);
        throw;
    }
}

KernelHost::~KernelHost() {
    thread_.stop(*running_);
    if (stat_fd_ >= 0) close(stat_fd_);
}

void KernelHost::fail_finished() {
    running_->done.wait();
    if (running_->error) {
        try {
            std::rethrow_exception(running_->error);
        } catch (const std::exception& error) {
            throw HostFailure(HostFailure::Kind::infrastructure, error.what());
        }
    }
    HostFailure failure = failure_of(running_->result);
    failure.fault = answers_->fault.load();
    failure.fault_buffer = static_cast<int>(answers_->fault_buffer);
    throw failure;
}

void KernelHost::wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                          std::chrono::milliseconds timeout, bool spin) {
    static const bool only_core = std::thread::hardware_concurrency() < 2;
    const double deadline = now_ns() + to_ns(timeout);
    while (word.load(std::memory_order_acquire) != value) {
        for (int i = 0; i < kSpinsBetweenChecks; ++i) {
            if (word.load(std::memory_order_acquire) == value) return;
            _mm_pause();
        }
        if (running_->finished) fail_finished();
        if (now_ns() > deadline) {
            thread_.stop(*running_);
            throw HostFailure(HostFailure::Kind::timed_out,
                              fmt::format("no answer within {} ms", timeout.count()));
        }
        if (spin) {
            // With one core the host needs ours; with two, giving it away disturbs the clock.
            if (only_core) sched_yield();
        } else {
            const timespec pause{0, 200'000};
            nanosleep(&pause, nullptr);
        }
    }
}

double KernelHost::call(const HostCall& request) {
    if (running_->finished) fail_finished();
    std::copy(request.offsets.begin(), request.offsets.end(), orders_->offsets);
    std::copy(request.bytes.begin(), request.bytes.end(), orders_->bytes);
    std::copy(request.sizes.begin(), request.sizes.end(), orders_->sizes);
    orders_->order = host::Order::call;
    orders_->repeat = request.repeat;
    ++sequence_;
    woken_ns_ = now_ns();
    orders_->sequence.store(sequence_);
    syscall(SYS_futex, &orders_->sequence, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    wait_for(answers_->ready, sequence_, request.timeout, true);
    if (request.before_start) request.before_start();

    const double start = now_ns();
    go_tsc_ = __rdtsc();
    orders_->go.store(sequence_, std::memory_order_release);
    wait_for(answers_->done, sequence_, request.timeout, true);
    done_tsc_ = __rdtsc();
    done_ns_ = now_ns();
    return done_ns_ - start;
}

HostAudit KernelHost::audit() {
    // A process that claims to be done sleeps within microseconds; one that still works does not.
    const double give_up = now_ns() + std::max(kSleepWithinNs, 2 * (done_ns_ - woken_ns_));
    for (int looks = 0; !asleep() && now_ns() < give_up; ++looks) {
        if (running_->finished) fail_finished();
        if (looks > kLooksBeforeYield) sched_yield();
    }
    HostAudit audit;
    if (sequence_ > 0) {
        audit.excess_cpu_ns = cpu_ns() - cpu_asleep_ns_ - (done_ns_ - woken_ns_);
        audit.stamps_disagree = answers_->early_done == sequence_ ||
                                answers_->begin_tsc < go_tsc_ || answers_->end_tsc > done_tsc_ ||
                                answers_->end_tsc < answers_->begin_tsc;
    }
    // The clock of a foreign process is exact only while it sleeps; else it lags by a tick.
    cpu_asleep_ns_ = cpu_ns();
    // /proc/PID/stat field 20 would need parsing past the name; the directory has a link a thread.
    std::error_code ignored;
    int threads = 0;
    const std::filesystem::path tasks = fmt::format("/proc/{}/task", running_->pid.load());
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(tasks, ignored)) {
        ++threads;
    }
    audit.threads = threads;
    return audit;
}

double KernelHost::cpu_ns() const {
    timespec time{};
    if (clock_gettime(cpu_clock_, &time) != 0) return cpu_asleep_ns_;
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

bool KernelHost::asleep() const {
    std::array<char, 512> text{};
    const ssize_t n = pread(stat_fd_, text.data(), text.size() - 1, 0);
    if (n <= 0) return true;  // it is gone; the caller's next step finds out how
    const char* name_end = strrchr(text.data(), ')');
    return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'S' || name_end[2] == 'Z');
}

}  // namespace skein::tools
