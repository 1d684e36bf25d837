#include "sandbox/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace skein::sandbox {
namespace {

// posix_spawn puts descriptors at 0..n; ours must lie above, or one would overwrite another.
constexpr int kAbove = 300;
constexpr int kPipeBytes = 256 << 10;

[[noreturn]] void fail(const std::string& what, int error) {
    throw Error(fmt::format("sandbox: {}: {}", what, strerror(error)));
}

Descriptor high(int fd, const char* what) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, kAbove);
    if (copy < 0) fail(std::string("cannot duplicate ") + what, errno);
    return Descriptor(copy);
}

Descriptor memory_file(const std::string& content) {
    const Descriptor file(memfd_create("skein-sandbox", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.get() < 0) fail("cannot make a memory file", errno);
    for (std::size_t done = 0; done < content.size();) {
        const ssize_t n = write(file.get(), content.data() + done, content.size() - done);
        if (n < 0) fail("cannot fill a memory file", errno);
        done += static_cast<std::size_t>(n);
    }
    fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    lseek(file.get(), 0, SEEK_SET);
    return high(file.get(), "a memory file");
}

struct Pipe {
    Descriptor ours, theirs;
};

Pipe output_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe", errno);
    const Descriptor write_end(ends[1]);
    Pipe pipe{Descriptor(ends[0]), high(ends[1], "a pipe")};
    fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // a wish: users have a budget for it
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return pipe;
}

Pipe control_socket() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        fail("cannot make a socket pair", errno);
    const Descriptor far_end(ends[1]);
    return {Descriptor(ends[0]), high(ends[1], "a socket")};
}

Descriptor standard_input(const Command& command) {
    if (!command.input.empty()) return memory_file(command.input);
    const Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (null.get() < 0) fail("cannot open /dev/null", errno);
    return high(null.get(), "/dev/null");
}

/// Owns the two objects posix_spawn is told with.
struct SpawnSetup {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    SpawnSetup() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    }
    ~SpawnSetup() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    SpawnSetup& operator=(const SpawnSetup&) = delete;
    void place(const Descriptor& fd, int number) {
        posix_spawn_file_actions_adddup2(&actions, fd.get(), number);
    }
};

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

Descriptor::~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
}

int Descriptor::release() noexcept {
    return std::exchange(fd_, -1);
}

Spawned spawn_runner(const std::string& runner, const Plan& plan, const Command& command,
                     const std::string& extra_environment) {
    Pipe out = output_pipe();
    Pipe err = output_pipe();
    Pipe control = control_socket();
    const Descriptor plan_file = memory_file(encode_plan(plan));
    const Descriptor input = standard_input(command);
    std::vector<Descriptor> passed;
    for (const PassedDescriptor& descriptor : command.descriptors)
        passed.push_back(high(descriptor.fd, "a descriptor for the command"));

    SpawnSetup setup;
    setup.place(input, 0);
    setup.place(out.theirs, 1);
    setup.place(err.theirs, 2);
    setup.place(control.theirs, kControlFd);
    setup.place(plan_file, kPlanFd);
    int number = kFirstPassedFd;
    for (const Descriptor& descriptor : passed) setup.place(descriptor, number++);
    posix_spawn_file_actions_addclosefrom_np(&setup.actions, number);

    std::string name = "skein-sandbox-runner";
    std::string mode = "run";
    std::string extra = extra_environment;
    char* argv[] = {name.data(), mode.data(), nullptr};
    char* environment[] = {extra.empty() ? nullptr : extra.data(), nullptr};
    Spawned spawned;
    const int error = posix_spawn(&spawned.pid, runner.c_str(), &setup.actions, &setup.attributes,
                                  argv, environment);
    if (error != 0) fail("cannot start " + runner, error);
    spawned.handle = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, spawned.pid, 0)));
    if (spawned.handle.get() < 0) {
        const int reason = errno;
        kill(spawned.pid, SIGKILL);
        waitpid(spawned.pid, nullptr, 0);
        fail("cannot watch the supervisor", reason);
    }
    spawned.control = std::move(control.ours);
    spawned.out = std::move(out.ours);
    spawned.err = std::move(err.ours);
    return spawned;
}

}  // namespace skein::sandbox
