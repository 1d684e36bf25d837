#include "sandbox/hardening.h"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace skein::sandbox {
namespace {

TEST_SUITE_BEGIN("sandbox/hardening");

TEST_CASE("a hardened process cannot dump core or be read") {
    // In a child: it cannot be undone, and the other cases need an ordinary process.
    const pid_t child = fork();
    if (child == 0) {
        harden_this_process();
        rlimit core{};
        getrlimit(RLIMIT_CORE, &core);
        _exit(prctl(PR_GET_DUMPABLE) == 0 && core.rlim_max == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
