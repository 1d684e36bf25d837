// Attacks its own sandbox and prints one line a layer: name, "ok" or "open", and what was seen,
// separated by tabs. A layer is what these attempts prove, not what flags were asked for.
//
// Arguments: canary file, canary environment value, TCP port, abstract socket name, socket path;
// all of them exist outside and answer there.

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

void line(const char* layer, bool ok, const std::string& detail) {
    printf("%s\t%s\t%s\n", layer, ok ? "ok" : "open", detail.c_str());
}

std::string error_text() {
    return strerror(errno);
}

void check_identity() {
    // Were we root of the machine outside, root's files would be ours inside.
    struct stat usr {};
    const bool known = stat("/usr", &usr) == 0;
    line("identity", getuid() != 0 && known && usr.st_uid != getuid(),
         "uid " + std::to_string(getuid()) + " inside, root's files are uid " +
             std::to_string(usr.st_uid));
}

void check_privileges() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    const bool asked = syscall(SYS_capget, &header, data) == 0;
    const bool none =
        (data[0].effective | data[1].effective | data[0].permitted | data[1].permitted) == 0;
    line("capabilities", asked && none, none ? "none" : "some are left");
    line("no new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "set-uid gains nothing");
}

void check_seccomp() {
    const bool filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
    const bool keyctl = syscall(SYS_keyctl, 0, -3, 0, 0, 0) < 0 && errno == EPERM;
    const bool vsock = socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT;
    line("seccomp", filtered && keyctl && vsock,
         filtered ? "keyrings and vsock refused" : "no filter");
}

void check_files(const char* canary) {
    const bool hidden = open(canary, O_RDONLY | O_CLOEXEC) < 0;
    const bool protected_file = open(canary, O_WRONLY | O_CLOEXEC) < 0;
    const bool root = open("/skein-probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0;
    const bool usr = open("/usr/skein-probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0;
    const char* directory = getenv("TMPDIR");
    const std::string own = std::string(directory != nullptr ? directory : "/tmp") + "/skein-probe";
    const bool tmp = open(own.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0;
    line("file system", hidden && protected_file && root && usr && tmp,
         !tmp ? "the temporary directory is not writable"
              : "the rest of the machine is not visible");
}

bool found_in(const std::string& path, const char* text) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char buffer[65536];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    close(fd);
    return n > 0 && memmem(buffer, static_cast<std::size_t>(n), text, strlen(text)) != nullptr;
}

void check_processes(const char* canary) {
    DIR* proc = opendir("/proc");
    int count = 0;
    bool leaked = false;
    while (const dirent* entry = proc != nullptr ? readdir(proc) : nullptr) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        ++count;
        leaked = leaked || found_in(std::string("/proc/") + entry->d_name + "/environ", canary);
    }
    if (proc != nullptr) closedir(proc);
    line("environment", !leaked, leaked ? "a secret was readable" : "no secret in any process");
    line("pid namespace", getpid() < 10 && count<4, count> 0
                              ? std::to_string(count) + " processes visible"
                              : "no /proc");
    const bool mounted = access("/proc/self/status", R_OK) == 0;
    line("proc", mounted && count > 0, mounted ? "own /proc" : "no /proc inside");
    const int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    line("kernel settings", fd < 0,
         fd < 0 ? "/proc/sys: " + error_text() : "/proc/sys is writable");
}

bool connects(int family, const sockaddr* address, socklen_t size) {
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && connect(fd, address, size) == 0;
}

void check_network(const char* port, const char* abstract_name, const char* path) {
    sockaddr_in tcp{};
    tcp.sin_family = AF_INET;
    tcp.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool tcp_open = connects(AF_INET, reinterpret_cast<sockaddr*>(&tcp), sizeof tcp);
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    strncpy(local.sun_path + 1, abstract_name, sizeof local.sun_path - 2);
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + strlen(abstract_name));
    const bool abstract_open = connects(AF_UNIX, reinterpret_cast<sockaddr*>(&local), size);
    sockaddr_un file{};
    file.sun_family = AF_UNIX;
    strncpy(file.sun_path, path, sizeof file.sun_path - 1);
    const bool path_open = connects(AF_UNIX, reinterpret_cast<sockaddr*>(&file), sizeof file);
    line("network", !tcp_open && !abstract_open,
         tcp_open        ? "TCP to the host"
         : abstract_open ? "abstract socket of the host"
                         : "TCP and abstract sockets refused");
    line("socket files", !path_open,
         path_open ? "a service of the host was reached" : "not visible");
}

void check_nesting() {
    const bool unshared = unshare(CLONE_NEWUSER) == 0;
    line("nested namespaces", !unshared, unshared ? "unshare worked" : error_text());
}

void check_init() {
    const pid_t init = getppid();
    const std::string path = "/proc/" + std::to_string(init) + "/mem";
    const bool memory = open(path.c_str(), O_RDWR | O_CLOEXEC) >= 0;
    const bool traced = ptrace(PTRACE_SEIZE, init, nullptr, nullptr) == 0;
    line("init", !memory && !traced, "init cannot be read, written or traced");
    // Init has our uid: only the signal scope of Landlock (version 6) can refuse this.
    const bool scoped = kill(init, 0) != 0 && errno == EPERM;
    const int version = landlock_version();
    line("landlock", version > 0 && (scoped || version < 6), "version " + std::to_string(version));
}

void check_limits() {
    rlimit core{}, processes{};
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_NPROC, &processes);
    line("limits", core.rlim_max == 0 && processes.rlim_max != RLIM_INFINITY,
         "no core files, at most " + std::to_string(processes.rlim_max) + " processes");
}

}  // namespace

int run_probe(int argc, char** argv) {
    if (argc != 7) return 2;
    check_identity();
    check_privileges();
    check_seccomp();
    check_files(argv[2]);
    check_processes(argv[3]);
    check_network(argv[4], argv[5], argv[6]);
    check_nesting();
    check_init();
    check_limits();
    fflush(stdout);
    return 0;
}

}  // namespace skein::sandbox::runner
