#include "sandbox/spawn.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "tests/sandbox/support.h"

namespace skein::sandbox {
namespace {

TEST_SUITE_BEGIN("sandbox/spawn");

TEST_CASE("a descriptor has one owner and is closed once") {
    int number = -1;
    {
        Descriptor first(open("/dev/null", O_RDONLY | O_CLOEXEC));
        number = first.get();
        const Descriptor second(std::move(first));
        CHECK(first.get() == -1);
        CHECK(second.get() == number);
        CHECK(fcntl(number, F_GETFD) >= 0);
    }
    CHECK(fcntl(number, F_GETFD) == -1);
}

TEST_CASE("a missing runner is an error that names it and leaves no child") {
    CHECK_THROWS_WITH_AS(spawn_runner("/not/there/runner", {}, test::bash("true")),
                         doctest::Contains("/not/there/runner"), Error);
    CHECK(test::children().empty());
}

TEST_CASE("a descriptor that is not open is refused before anything starts") {
    Command command = test::bash("true");
    command.descriptors = {{9999, 3}};
    CHECK_THROWS_AS(spawn_runner("/usr/bin/true", {}, command), Error);
}

TEST_CASE("the supervisor starts without environment, in its own session") {
    // `env` ignores the unknown plan; its argument "run" is a program that does not exist.
    Spawned spawned = spawn_runner("/usr/bin/env", {}, test::bash("true"));
    CHECK(getsid(spawned.pid) != getsid(0));
    int status = 0;
    CHECK(waitpid(spawned.pid, &status, 0) == spawned.pid);
    CHECK(WEXITSTATUS(status) == 127);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox
