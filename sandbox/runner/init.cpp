// Process 1 inside. It forks the command, reaps everything, kills what is left, and reports on a
// private socket what happened. The command cannot forge that report: init is not dumpable, outside
// the command's Landlock domain, and its socket is closed in the command.

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

struct Init {
    Plan plan;
    int report = -1;        ///< socket to the runner outside
    int error_stream = -1;  ///< standard error of the command
    int first_passed = -1;  ///< passed descriptors start here
    std::uint64_t started_us = 0;
};

void send_report(const Init& init, const InitReport& report) {
    while (send(init.report, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

[[noreturn]] void refuse(const Init& init, const char* step, int error) {
    InitReport report;
    report.kind = InitReport::refused;
    report.error = error;
    strncpy(report.step, step, sizeof report.step - 1);
    send_report(init, report);
    _exit(127);
}

bool limit(int resource, std::uint64_t soft, std::uint64_t hard) {
    rlimit current{};
    getrlimit(static_cast<__rlimit_resource>(resource), &current);
    // Never above what we were given ourselves.
    const rlimit wanted{std::min<rlim_t>(soft, current.rlim_max),
                        std::min<rlim_t>(hard, current.rlim_max)};
    return setrlimit(static_cast<__rlimit_resource>(resource), &wanted) == 0;
}

bool set_limits(const Plan& plan) {
    bool ok = limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_NOFILE, 4096, 4096);
    if (plan.pids != 0 && plan.isolate != 0) ok = ok && limit(RLIMIT_NPROC, plan.pids, plan.pids);
    if (plan.file_bytes != 0) ok = ok && limit(RLIMIT_FSIZE, plan.file_bytes, plan.file_bytes);
    if (plan.cpu_ms != 0) {
        const std::uint64_t seconds = (plan.cpu_ms + 999) / 1000;
        ok = ok && limit(RLIMIT_CPU, seconds, seconds + 1);
    }
    return ok;
}

/// Passed descriptors get their numbers; everything else above 2 closes at exec.
bool arrange_descriptors(Init& init) {
    std::vector<int> sources;
    for (std::size_t i = 0; i < init.plan.descriptor_targets.size(); ++i)
        sources.push_back(
            fcntl(init.first_passed + static_cast<int>(i), F_DUPFD_CLOEXEC, kPrivateFd));
    init.report = fcntl(init.report, F_DUPFD_CLOEXEC, kPrivateFd);
    if (init.report < 0 || dup2(init.error_stream, 2) < 0) return false;
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
    for (std::size_t i = 0; i < sources.size(); ++i)
        if (sources[i] < 0 ||
            dup2(sources[i], static_cast<int>(init.plan.descriptor_targets[i])) < 0)
            return false;
    return true;
}

void reset_signals() {
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> list;
    for (std::string& text : strings) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

[[noreturn]] void become_command(Init& init) {
    reset_signals();
    umask(022);
    if (setsid() < 0) refuse(init, "setsid", errno);
    if (chdir(init.plan.working_directory.c_str()) != 0)
        refuse(init, "enter the working directory", errno);
    if (!set_limits(init.plan)) refuse(init, "set resource limits", errno);
    if (!arrange_descriptors(init)) refuse(init, "arrange descriptors", errno);
    // The kernel adds our pid to this packet, translated for the receiver outside.
    InitReport hello;
    hello.kind = InitReport::command;
    send_report(init, hello);

    std::vector<char*> argv = pointers(init.plan.argv);
    std::vector<char*> environment = pointers(init.plan.environment);
    environ = environment.data();
    const int landlock = install_landlock(init.plan);
    if (landlock != 0 && landlock != ENOSYS && landlock != EOPNOTSUPP)
        refuse(init, "install the Landlock rules", landlock);
    if (const int error = install_seccomp(init.plan); error != 0)
        refuse(init, "install the seccomp filter", error);
    execvp(argv[0], argv.data());
    refuse(init, "execute the program", errno);
}

InitReport summary(const Init& init, int wait_status, bool left) {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    const auto microseconds = [](const timeval& time) {
        return static_cast<std::uint64_t>(time.tv_sec) * 1000000 +
               static_cast<std::uint64_t>(time.tv_usec);
    };
    InitReport report;
    report.kind = InitReport::finished;
    report.wait_status = wait_status;
    report.left_processes = left ? 1 : 0;
    report.wall_us = now_us() - init.started_us;
    report.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    report.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    return report;
}

/// Kills everything in this namespace. True when there was something to kill.
bool kill_rest(const Init& init) {
    // Zombies are not leftovers; collect them first.
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    bool found = false;
    if (init.plan.isolate != 0) {
        found = kill(-1, SIGKILL) == 0;
        while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
        }
        return found;
    }
    // Without a pid namespace, orphans come to us because we are a subreaper.
    while (kill_children() > 0) {
        found = true;
        waitpid(-1, nullptr, 0);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    }
    return found;
}

/// Waits for the command; returns its wait status. Ends the namespace when the runner is gone.
int wait_for(const Init& init, pid_t command, int child_events) {
    for (;;) {
        int status = 0;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            if (pid == command) return status;
        pollfd events[2] = {{child_events, POLLIN, 0}, {init.report, 0, 0}};
        if (poll(events, 2, -1) < 0) continue;
        if ((events[1].revents & (POLLHUP | POLLERR)) != 0) {
            kill_rest(init);
            _exit(1);
        }
        signalfd_siginfo ignored;
        while (read(child_events, &ignored, sizeof ignored) > 0) {
        }
    }
}

/// Also the streams: the reader outside must see end of file when the command closes them.
void close_all_but(int one, int other) {
    const auto low = static_cast<unsigned>(std::min(one, other));
    const auto high = static_cast<unsigned>(std::max(one, other));
    close_range(0, low - 1, 0);
    if (low + 1 < high) close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0U, 0);
}

bool load_plan(int fd, Plan& plan) {
    struct stat info {};
    if (fstat(fd, &info) != 0) return false;
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    const bool whole = pread(fd, bytes.data(), bytes.size(), 0) == info.st_size;
    close(fd);
    return whole && decode_plan(bytes, plan);
}

}  // namespace

int run_init(int argc, char** argv) {
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    Init init;
    if (argc != 6) return 125;
    const int plan_fd = std::atoi(argv[2]);
    init.report = std::atoi(argv[3]);
    init.error_stream = std::atoi(argv[4]);
    init.first_passed = std::atoi(argv[5]);
    if (!load_plan(plan_fd, init.plan) || init.plan.argv.empty()) return 125;
    InitReport hello;
    hello.kind = InitReport::hello;
    send_report(init, hello);

    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, nullptr);
    const int child_events = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    int executed[2];
    if (pipe2(executed, O_CLOEXEC) != 0) refuse(init, "make a pipe", errno);
    init.started_us = now_us();
    const pid_t command = fork();
    if (command < 0) refuse(init, "fork", errno);
    if (command == 0) become_command(init);
    close(executed[1]);
    char nothing;
    // End of file: the command's copy closed at exec, or the command is gone.
    while (read(executed[0], &nothing, 1) < 0 && errno == EINTR) {
    }
    InitReport running;
    running.kind = InitReport::executed;
    send_report(init, running);
    close_all_but(init.report, child_events);
    const int status = wait_for(init, command, child_events);
    const bool left = kill_rest(init);
    send_report(init, summary(init, status, left));
    return 0;
}

}  // namespace skein::sandbox::runner
