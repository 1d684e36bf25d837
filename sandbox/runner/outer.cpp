// One run, seen from outside. Starts bwrap, owns the deadline and the limits that need polling,
// and does not end before every process of the run is gone: it is a subreaper, so whatever loses
// its parent becomes its child and is killed.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

constexpr std::uint64_t kSetupDeadlineUs = 20'000'000;
constexpr std::uint64_t kUsagePollUs = 40'000;
constexpr std::uint64_t kDiskPollUs = 200'000;

struct Supervisor {
    Plan plan;
    std::string self;       ///< this program
    int init_socket = -1;   ///< our end
    int setup_errors = -1;  ///< what bwrap says
    int child_events = -1;  ///< signalfd
    pid_t bwrap = -1;
    pid_t init = -1;
    int init_handle = -1;  ///< pidfd: cannot hit another process
    pid_t command = -1;
    bool running = false;  ///< the command was executed
    bool killing = false;
    bool have_summary = false;
    Code code = Code::setup_failed;  ///< why we kill
    InitReport summary;
    std::string detail;
    std::uint64_t start_us = 0, run_us = 0, next_usage_us = 0, next_disk_us = 0;
    std::uint64_t disk_at_start = 0, peak_rss = 0, cpu_us = 0;
    int bwrap_status = 0;
};

void send_report(const Report& report, const std::string& detail) {
    std::string bytes(reinterpret_cast<const char*>(&report), sizeof report);
    bytes += detail;
    while (send(kControlFd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

int fail_setup(const std::string& detail) {
    Report report;
    report.kind = Report::finished;
    report.outcome = static_cast<std::uint32_t>(Code::setup_failed);
    send_report(report, detail);
    return 1;
}

bool load_plan(Plan& plan) {
    struct stat info {};
    if (fstat(kPlanFd, &info) != 0) return false;
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    return pread(kPlanFd, bytes.data(), bytes.size(), 0) == info.st_size &&
           decode_plan(bytes, plan);
}

[[noreturn]] void exec_bwrap(Supervisor& s, int init_end, int errors_end) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<int> keep{kPlanFd, init_end};
    const int error_stream = fcntl(2, F_DUPFD, 3);
    keep.push_back(error_stream);
    dup2(errors_end, 2);
    const int n_passed = static_cast<int>(s.plan.descriptor_targets.size());
    for (int i = 0; i < n_passed; ++i) keep.push_back(kFirstPassedFd + i);
    std::vector<std::string> arguments;
    if (s.plan.isolate != 0) {
        std::string block;
        for (const std::string& argument : bwrap_arguments(s.plan, keep)) block += argument + '\0';
        const int arguments_fd = memory_file(block);
        keep.push_back(arguments_fd);
        arguments = {"bwrap", "--args", std::to_string(arguments_fd), kInitPath};
    } else {
        arguments = {s.self};
    }
    for (const std::string& word :
         {std::string("init"), std::to_string(kPlanFd), std::to_string(init_end),
          std::to_string(error_stream), std::to_string(kFirstPassedFd)})
        arguments.push_back(word);
    for (const int fd : keep) fcntl(fd, F_SETFD, 0);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    char path[] = "PATH=/usr/bin:/bin";
    char* environment[] = {path, nullptr};
    const char* program = s.plan.isolate != 0 ? s.plan.bwrap.c_str() : s.self.c_str();
    execve(program, argv.data(), environment);
    dprintf(2, "cannot execute %s: %s", program, strerror(errno));
    _exit(126);
}

std::string start(Supervisor& s) {
    int socket_pair[2];
    int errors[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket_pair) != 0 ||
        pipe2(errors, O_CLOEXEC) != 0)
        return std::string("cannot make channels: ") + strerror(errno);
    const int on = 1;
    setsockopt(socket_pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    s.init_socket = socket_pair[0];
    s.setup_errors = errors[0];
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    s.bwrap = fork();
    if (s.bwrap < 0) return std::string("cannot fork: ") + strerror(errno);
    if (s.bwrap == 0) exec_bwrap(s, socket_pair[1], errors[1]);
    close(socket_pair[1]);
    close(errors[1]);
    // End of file outside must not wait for us.
    for (int fd = 0; fd < 3; ++fd) close(fd);
    for (std::size_t i = 0; i < s.plan.descriptor_targets.size(); ++i)
        close(kFirstPassedFd + static_cast<int>(i));
    return {};
}

TreeUsage sample_usage(Supervisor& s) {
    TreeUsage usage = usage_of_tree(s.init);
    // Forked workers share pages; only a sum that looks too large is worth the exact count.
    if (s.plan.memory_bytes != 0 && usage.rss_bytes > s.plan.memory_bytes)
        usage = usage_of_tree(s.init, true);
    s.peak_rss = std::max(s.peak_rss, usage.rss_bytes);
    s.cpu_us = std::max(s.cpu_us, usage.cpu_us);
    return usage;
}

/// First reason wins. Killing init ends the pid namespace with everything in it.
void kill_run(Supervisor& s, Code code) {
    if (!s.killing) {
        s.code = code;
        // The kernel does not account what it kills together with init.
        sample_usage(s);
    }
    s.killing = true;
    if (s.init_handle >= 0) syscall(SYS_pidfd_send_signal, s.init_handle, SIGKILL, nullptr, 0);
    if (!s.running || s.plan.isolate == 0) kill_children();
}

void on_init_packet(Supervisor& s, const InitReport& packet, pid_t sender) {
    switch (packet.kind) {
        case InitReport::hello:
            s.init = sender;
            s.init_handle = static_cast<int>(syscall(SYS_pidfd_open, sender, 0));
            break;
        case InitReport::command:
            s.command = sender;
            break;
        case InitReport::executed:
            if (!s.detail.empty()) break;
            s.running = true;
            s.run_us = now_us();
            {
                Report report;
                report.kind = Report::started;
                report.host_pid = s.command;
                send_report(report, {});
            }
            break;
        case InitReport::refused:
            s.detail = std::string("cannot ") + packet.step + ": " + strerror(packet.error);
            break;
        case InitReport::finished:
            s.summary = packet;
            s.have_summary = true;
            break;
    }
}

void read_init(Supervisor& s) {
    for (;;) {
        InitReport packet;
        iovec part{&packet, sizeof packet};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t n = recvmsg(s.init_socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n != static_cast<ssize_t>(sizeof packet)) {
            if (n == 0) {
                close(s.init_socket);
                s.init_socket = -1;
            }
            return;
        }
        pid_t sender = -1;
        for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
            if (c->cmsg_type == SCM_CREDENTIALS) {
                ucred credentials{};
                memcpy(&credentials, CMSG_DATA(c), sizeof credentials);
                sender = credentials.pid;
            }
        on_init_packet(s, packet, sender);
    }
}

void read_setup_errors(Supervisor& s, std::string& text) {
    char buffer[1024];
    ssize_t n;
    while ((n = read(s.setup_errors, buffer, sizeof buffer)) > 0)
        if (text.size() < 4096) text.append(buffer, static_cast<std::size_t>(n));
    if (n == 0) {
        close(s.setup_errors);
        s.setup_errors = -1;
    }
}

void read_orders(Supervisor& s) {
    Order order{};
    const ssize_t n = recv(kControlFd, &order, sizeof order, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    kill_run(s, n == 1 && order == Order::kill_output_limit ? Code::output_limit : Code::killed);
}

void check_limits(Supervisor& s, std::uint64_t now) {
    if (!s.running) {
        if (now - s.start_us > kSetupDeadlineUs) {
            s.detail = "the sandbox was not ready after 20 s";
            kill_run(s, Code::setup_failed);
        }
        return;
    }
    if (now - s.run_us >= s.plan.wall_ms * 1000) kill_run(s, Code::timed_out);
    if (now >= s.next_usage_us) {
        const TreeUsage usage = sample_usage(s);
        if (s.plan.memory_bytes != 0 && usage.rss_bytes > s.plan.memory_bytes)
            kill_run(s, Code::out_of_memory);
        // RLIMIT_NPROC counts per user namespace; without one somebody has to count.
        if (s.plan.isolate == 0 && usage.processes > s.plan.pids) {
            s.detail = "more processes than allowed";
            kill_run(s, Code::killed);
        }
        if (s.plan.cpu_ms != 0 && usage.cpu_us > s.plan.cpu_ms * 1000) kill_run(s, Code::timed_out);
        s.next_usage_us = now_us() + kUsagePollUs;
    }
    if (s.plan.workspace_writable != 0 && s.plan.disk_bytes != 0 && now >= s.next_disk_us) {
        const std::uint64_t before = now_us();
        if (disk_usage(s.plan.workspace) > s.disk_at_start + s.plan.disk_bytes)
            kill_run(s, Code::disk_limit);
        // A large tree is measured less often: at most a tenth of the time goes into it.
        s.next_disk_us = now_us() + std::max(kDiskPollUs, 10 * (now_us() - before));
    }
}

int poll_timeout_ms(const Supervisor& s, std::uint64_t now) {
    if (s.killing) return 5;
    if (!s.running) return 1000;
    std::uint64_t next = std::min(s.next_usage_us, s.run_us + s.plan.wall_ms * 1000);
    if (s.plan.workspace_writable != 0) next = std::min(next, s.next_disk_us);
    return next <= now ? 0
                       : static_cast<int>(std::min<std::uint64_t>((next - now) / 1000 + 1, 1000));
}

/// Collects every child that ended. False when none is left.
bool reap(Supervisor& s) {
    for (;;) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0) return true;
        if (pid < 0) return errno == EINTR;
        if (pid == s.bwrap) {
            s.bwrap_status = status;
            s.bwrap = -1;
            // Adopted now: whatever bwrap left behind, at any stage of its start.
            s.killing = s.killing || !s.have_summary;
        }
    }
}

void supervise(Supervisor& s, std::string& setup_text) {
    for (;;) {
        pollfd events[4] = {{kControlFd, POLLIN, 0},
                            {s.child_events, POLLIN, 0},
                            {s.init_socket, POLLIN, 0},
                            {s.setup_errors, POLLIN, 0}};
        if (s.killing) events[0].fd = -1;
        poll(events, 4, poll_timeout_ms(s, now_us()));
        signalfd_siginfo ignored;
        while (read(s.child_events, &ignored, sizeof ignored) > 0) {
        }
        if (s.init_socket >= 0) read_init(s);
        if (s.setup_errors >= 0) read_setup_errors(s, setup_text);
        const bool alive = reap(s);
        if (s.init_socket >= 0) read_init(s);
        if (!alive) return;
        if (events[0].revents != 0) read_orders(s);
        if (!s.killing && !s.have_summary) check_limits(s, now_us());
        if (s.killing) kill_run(s, s.code);
        // bwrap is gone but something of it is not: it must not outlive us.
        if (s.bwrap < 0) kill_children();
    }
}

Report conclude(const Supervisor& s) {
    Report report;
    report.kind = Report::finished;
    report.cpu_us = s.cpu_us;
    report.peak_rss_bytes = s.peak_rss;
    report.wall_us = s.running ? now_us() - s.run_us : 0;
    Code code = s.code;
    if (s.have_summary && s.running) {
        report.cpu_us = s.summary.cpu_us;
        report.wall_us = s.summary.wall_us;
        report.peak_rss_bytes = std::max(s.peak_rss, s.summary.peak_rss_bytes);
        report.left_processes = s.summary.left_processes;
        const int status = s.summary.wait_status;
        if (WIFEXITED(status)) report.exit_code = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) report.signal = WTERMSIG(status);
        code = WIFEXITED(status) ? Code::exited : Code::signalled;
        if (report.signal == SIGXCPU && s.plan.cpu_ms != 0) code = Code::timed_out;
    } else if (s.running && s.code == Code::setup_failed) {
        // Init ended without a word: the kernel or somebody outside killed it.
        code = Code::killed;
    }
    report.outcome = static_cast<std::uint32_t>(code);
    return report;
}

}  // namespace

int run_outside() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fcntl(kControlFd, F_SETFD, FD_CLOEXEC);
    Supervisor s;
    if (!load_plan(s.plan))
        return fail_setup("the plan is damaged or of another build of skein-sandbox-runner");
    s.start_us = now_us();
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
    s.self.assign(self, n > 0 ? static_cast<std::size_t>(n) : 0);
    if (const std::string problem = become_unprivileged(s.plan); !problem.empty())
        return fail_setup(problem);
    prctl(PR_SET_DUMPABLE, 0);
    if (s.plan.workspace_writable != 0 && s.plan.disk_bytes != 0)
        s.disk_at_start = disk_usage(s.plan.workspace);

    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, nullptr);
    s.child_events = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (const std::string problem = start(s); !problem.empty()) return fail_setup(problem);
    std::string setup_text;
    supervise(s, setup_text);

    const Report report = conclude(s);
    while (!setup_text.empty() && setup_text.back() == '\n') setup_text.pop_back();
    if (s.detail.empty() && report.outcome == static_cast<std::uint32_t>(Code::setup_failed))
        s.detail = setup_text.empty() ? "the sandbox ended before the command started" : setup_text;
    send_report(report, s.detail);
    return 0;
}

}  // namespace skein::sandbox::runner
