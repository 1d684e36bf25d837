#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sandbox/runner/parts.h"

namespace skein::sandbox::runner {
namespace {

using Words = std::vector<std::string>;

void add(Words& words, std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
}

void add_mount(Words& words, const PlanMount& mount, std::vector<int>& keep_open) {
    const std::string suffix = mount.optional != 0 ? "-try" : "";
    switch (mount.kind) {
        case PlanMount::read_only:
            return add(words, {"--ro-bind" + suffix, mount.source, mount.target});
        case PlanMount::writable:
            return add(words, {"--bind" + suffix, mount.source, mount.target});
        case PlanMount::device:
            return add(words, {"--dev-bind" + suffix, mount.source, mount.target});
        case PlanMount::tmpfs:
            return add(words, {"--perms", "1777", "--size", std::to_string(mount.bytes), "--tmpfs",
                               mount.target});
        case PlanMount::symlink:
            return add(words, {"--symlink", mount.source, mount.target});
        case PlanMount::file:
            keep_open.push_back(memory_file(mount.source));
            return add(words, {"--perms", "0444", "--file", std::to_string(keep_open.back()),
                               mount.target});
        case PlanMount::proc:
            return add(words, {"--proc", mount.target});
        case PlanMount::dev:
            return add(words, {"--dev", mount.target});
        case PlanMount::seal:
            return add(words, {"--remount-ro", mount.target});
    }
}

}  // namespace

int memory_file(const std::string& content) {
    const int fd = memfd_create("skein", MFD_CLOEXEC);
    std::size_t done = 0;
    while (fd >= 0 && done < content.size()) {
        const ssize_t n = write(fd, content.data() + done, content.size() - done);
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

std::vector<std::string> bwrap_arguments(const Plan& plan, std::vector<int>& keep_open) {
    // --unshare-user must be said on its own: --disable-userns does not accept the implied one.
    Words words{"--unshare-user", "--unshare-all", "--cap-drop", "ALL",   "--die-with-parent",
                "--as-pid-1",     "--hostname",    "sandbox",    "--uid", "1000",
                "--gid",          "1000"};
    if (plan.disable_userns != 0) add(words, {"--disable-userns"});
    // Made here because directories that bwrap makes for a file are closed to others.
    for (const char* directory : {"/etc", "/etc/ssl", "/etc/ld.so.conf.d", "/run", "/run/skein"})
        add(words, {"--perms", "0755", "--dir", directory});
    for (const PlanMount& mount : plan.mounts) {
        // Our init goes in before the root is sealed, which is always the last step.
        if (mount.kind == PlanMount::seal && mount.target == "/") {
            keep_open.push_back(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
            add(words, {"--perms", "0555", "--file", std::to_string(keep_open.back()), kInitPath});
        }
        add_mount(words, mount, keep_open);
    }
    return words;
}

}  // namespace skein::sandbox::runner
