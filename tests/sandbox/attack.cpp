// The attacks that need C: run inside a sandbox by the tests. Each prints "name RESULT" lines,
// where RESULT is "ok" or the name of the error.

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

void show(const char* name, long rc) {
    printf("%s %s\n", name, rc < 0 ? strerrorname_np(errno) : "ok");
    fflush(stdout);
}

/// Forks until it fails; the children stay. Prints how many there are.
void fork_bomb(int wanted) {
    int count = 0;
    while (count < wanted) {
        const pid_t child = fork();
        if (child < 0) break;
        if (child == 0) {
            pause();
            _exit(0);
        }
        ++count;
    }
    printf("children %d\n", count);
    show("fork", count < wanted ? -1 : 0);
}

void touch(size_t bytes) {
    char* memory = static_cast<char*>(malloc(bytes));
    for (size_t i = 0; memory != nullptr && i < bytes; i += 4096) memory[i] = 1;
    printf("touched %zu\n", bytes);
    fflush(stdout);
}

void split_memory(int processes, size_t bytes) {
    for (int i = 0; i < processes; ++i)
        if (fork() == 0) {
            touch(bytes);
            for (;;) pause();
        }
    for (;;) pause();
}

/// Children that only share what the parent touched.
void shared_memory(int processes, size_t bytes) {
    touch(bytes);
    for (int i = 0; i < processes; ++i)
        if (fork() == 0) {
            sleep(1);
            _exit(0);
        }
    while (wait(nullptr) > 0) {
    }
}

void attack_init() {
    show("open /proc/1/mem", open("/proc/1/mem", O_RDWR));
    show("open /proc/1/environ", open("/proc/1/environ", O_RDONLY));
    show("list /proc/1/fd", opendir("/proc/1/fd") == nullptr ? -1 : 0);
    show("ptrace attach", ptrace(PTRACE_ATTACH, 1, nullptr, nullptr));
    show("ptrace seize", ptrace(PTRACE_SEIZE, 1, nullptr, nullptr));
    char byte = 0;
    iovec here{&byte, 1}, there{reinterpret_cast<void*>(0x400000), 1};
    show("process_vm_readv", process_vm_readv(1, &here, 1, &there, 1, 0));
    show("kill", kill(1, SIGKILL));
    show("prlimit", prlimit(1, RLIMIT_CPU, nullptr, nullptr));
}

/// What a debugger does: a child that asks to be traced, stopped once and let go.
void trace_own_child() {
    const pid_t child = fork();
    if (child == 0) {
        const long asked = ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        if (asked != 0) _exit(errno);
        raise(SIGSTOP);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSTOPPED(status)) {
        show("continue", ptrace(PTRACE_CONT, child, nullptr, nullptr));
        waitpid(child, &status, 0);
    }
    errno = WEXITSTATUS(status);
    show("trace", errno == 0 ? 0 : -1);
}

long open_socket(int family, int type, int protocol) {
    return socket(family, type, protocol);
}

void sockets() {
    const struct {
        const char* name;
        int family, type;
    } list[] = {{"netlink", AF_NETLINK, SOCK_RAW}, {"packet", AF_PACKET, SOCK_RAW},
                {"alg", AF_ALG, SOCK_SEQPACKET},   {"vsock", AF_VSOCK, SOCK_STREAM},
                {"xdp", AF_XDP, SOCK_RAW},         {"bluetooth", AF_BLUETOOTH, SOCK_RAW},
                {"can", AF_CAN, SOCK_RAW},         {"tipc", AF_TIPC, SOCK_STREAM},
                {"key", AF_KEY, SOCK_RAW}};
    for (const auto& each : list) show(each.name, open_socket(each.family, each.type, 0));
    show("vsock with high bits", syscall(SYS_socket, AF_VSOCK | (1LL << 32), SOCK_STREAM, 0));
    show("unix", open_socket(AF_UNIX, SOCK_STREAM, 0));
}

void outside_network(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    const auto* raw = reinterpret_cast<const sockaddr*>(&address);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    show("tcp to the host", connect(socket(AF_INET, SOCK_STREAM, 0), raw, sizeof address));
    show("mptcp to the host", connect(socket(AF_INET, SOCK_STREAM, 262), raw, sizeof address));
    inet_pton(AF_INET, "10.1.2.3", &address.sin_addr);
    show("tcp out", connect(socket(AF_INET, SOCK_STREAM, 0), raw, sizeof address));
    show("udp out", sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, raw, sizeof address));
    show("raw", open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

void unix_socket(const char* name, bool abstract) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const size_t skip = abstract ? 1 : 0;
    strncpy(address.sun_path + skip, name, sizeof address.sun_path - 2);
    const size_t size = offsetof(sockaddr_un, sun_path) + skip + strlen(name);
    show(abstract ? "abstract" : "path",
         connect(socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(size)));
}

void terminal_injection() {
    char byte = 'x';
    const int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    show("open /dev/tty", open("/dev/tty", O_RDWR));
    show("TIOCSTI", ioctl(terminal, TIOCSTI, &byte));
    show("TIOCSTI with high bits", syscall(SYS_ioctl, terminal, TIOCSTI | (1LL << 32), &byte));
    show("TIOCLINUX", ioctl(terminal, TIOCLINUX, &byte));
}

void kernel_surface() {
    const struct {
        const char* name;
        long number;
    } list[] = {{"keyctl", SYS_keyctl},
                {"add_key", SYS_add_key},
                {"request_key", SYS_request_key},
                {"bpf", SYS_bpf},
                {"perf_event_open", SYS_perf_event_open},
                {"io_uring_setup", SYS_io_uring_setup},
                {"userfaultfd", SYS_userfaultfd},
                {"init_module", SYS_init_module},
                {"kexec_load", SYS_kexec_load},
                {"open_by_handle_at", SYS_open_by_handle_at},
                {"pidfd_getfd", SYS_pidfd_getfd},
                {"kcmp", SYS_kcmp},
                {"mount", SYS_mount},
                {"fsopen", SYS_fsopen},
                {"move_mount", SYS_move_mount},
                {"pivot_root", SYS_pivot_root},
                {"chroot", SYS_chroot},
                {"setns", SYS_setns},
                {"unshare", SYS_unshare},
                {"clock_settime", SYS_clock_settime},
                {"settimeofday", SYS_settimeofday},
                {"syslog", SYS_syslog},
                {"swapon", SYS_swapon},
                {"reboot", SYS_reboot}};
    for (const auto& each : list) show(each.name, syscall(each.number, 0, 0, 0, 0, 0, 0));
    show("clone with a user namespace",
         syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    clone_args arguments{};
    arguments.flags = CLONE_NEWUSER;
    show("clone3", syscall(SYS_clone3, &arguments, sizeof arguments));
}

void devices() {
    show("mknod", mknod("/tmp/disk", S_IFBLK | 0600, static_cast<dev_t>(0x800)));
    show("/dev/mem", open("/dev/mem", O_RDONLY));
    show("/dev/sda", open("/dev/sda", O_RDONLY));
    show("/dev/vda", open("/dev/vda", O_RDONLY));
    show("write in /dev", open("/dev/new", O_CREAT | O_WRONLY, 0600));
    show("/dev/null", open("/dev/null", O_RDWR));
}

void raise_limits() {
    const int limits[] = {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_CORE};
    const char* names[] = {"nofile", "nproc", "fsize", "core"};
    for (int i = 0; i < 4; ++i) {
        const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
        show(names[i], setrlimit(static_cast<__rlimit_resource>(limits[i]), &all));
    }
}

void foreign_abi(bool x32) {
    long result = 0;
    if (x32)
        result = syscall(0x40000000 | SYS_getpid);
    else
        asm volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");  // getpid of i386
    printf("survived %ld\n", result);
}

void* nothing(void*) {
    return nullptr;
}

void new_threads() {
    pthread_t thread;
    errno = pthread_create(&thread, nullptr, nothing, nullptr);
    show("thread", errno == 0 ? 0 : -1);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    show("fork", child);
    const pid_t quick = vfork();
    if (quick == 0) _exit(0);
    show("vfork", quick);
}

/// Prints every open descriptor above 2.
void descriptors() {
    for (int fd = 3; fd < 5000; ++fd)
        if (fcntl(fd, F_GETFD) >= 0) printf("open %d\n", fd);
}

void small_writes(long count) {
    for (long i = 0; i < count; ++i)
        if (write(1, "x", 1) != 1) return;
}

}  // namespace

int main(int argc, char** argv) {
    const auto is = [&](const char* name) { return argc > 1 && strcmp(argv[1], name) == 0; };
    const auto number = [&](int i) { return argc > i ? atol(argv[i]) : 0; };
    if (is("fork-bomb")) fork_bomb(static_cast<int>(number(2)));
    if (is("touch")) touch(static_cast<size_t>(number(2)) << 20);
    if (is("split-memory"))
        split_memory(static_cast<int>(number(2)), static_cast<size_t>(number(3)) << 20);
    if (is("shared-memory"))
        shared_memory(static_cast<int>(number(2)), static_cast<size_t>(number(3)) << 20);
    if (is("init")) attack_init();
    if (is("trace")) trace_own_child();
    if (is("sockets")) sockets();
    if (is("network")) outside_network(static_cast<int>(number(2)));
    if (is("abstract")) unix_socket(argv[2], true);
    if (is("path")) unix_socket(argv[2], false);
    if (is("terminal")) terminal_injection();
    if (is("kernel")) kernel_surface();
    if (is("devices")) devices();
    if (is("limits")) raise_limits();
    if (is("int80")) foreign_abi(false);
    if (is("x32")) foreign_abi(true);
    if (is("threads")) new_threads();
    if (is("descriptors")) descriptors();
    if (is("small-writes")) small_writes(number(2));
    return 0;
}
