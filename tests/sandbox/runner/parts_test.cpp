#include "sandbox/runner/parts.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::runner {
namespace {

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("sandbox/runner/parts");

TEST_CASE("outcomes have the same numbers on both sides") {
    const std::pair<Code, Outcome> pairs[] = {{Code::exited, Outcome::exited},
                                              {Code::signalled, Outcome::signalled},
                                              {Code::timed_out, Outcome::timed_out},
                                              {Code::out_of_memory, Outcome::out_of_memory},
                                              {Code::output_limit, Outcome::output_limit},
                                              {Code::disk_limit, Outcome::disk_limit},
                                              {Code::killed, Outcome::killed},
                                              {Code::setup_failed, Outcome::setup_failed}};
    for (const auto& [code, outcome] : pairs)
        CHECK(static_cast<std::uint32_t>(code) == static_cast<std::uint32_t>(outcome));
}

TEST_CASE("disk usage counts blocks, not lengths, and follows no link") {
    const test::TemporaryDirectory directory;
    const std::uint64_t empty = disk_usage(directory.path());
    test::write_file(directory.path() / "data", std::string(1 << 20, 'x'));
    fs::create_symlink("/usr", directory.path() / "link");
    const int sparse = open((directory.path() / "sparse").c_str(), O_CREAT | O_WRONLY, 0600);
    CHECK(ftruncate(sparse, 1LL << 40) == 0);
    close(sparse);
    const std::uint64_t used = disk_usage(directory.path()) - empty;
    CHECK(used >= 1 << 20);
    CHECK(used < 2 << 20);
}

TEST_CASE("68: a tree of any depth is walked with few descriptors") {
    const test::TemporaryDirectory directory;
    constexpr int kDepth = 200;
    constexpr rlim_t kFew = 64;
    int at = open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < kDepth; ++i) {
        REQUIRE(mkdirat(at, "d", 0755) == 0);
        const int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = below;
    }
    const int file = openat(at, "data", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const std::string bytes(1 << 20, 'x');
    CHECK(write(file, bytes.data(), bytes.size()) == 1 << 20);
    close(file);
    close(at);
    rlimit usual{};
    getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit few{kFew, usual.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    CHECK(disk_usage(directory.path()) >= 1 << 20);
    setrlimit(RLIMIT_NOFILE, &usual);
    CHECK(run_blocking(test::full_sandbox(), test::policy(directory.path()), test::bash("rm -rf d"),
                       test::limits())
              .ok());
}

TEST_CASE("files of root change hands, but not through links and not with other names") {
    if (geteuid() != 0) {
        MESSAGE("only root can give files away");
        return;
    }
    const test::TemporaryDirectory directory, outside;
    test::write_file(outside.path() / "other", "x");
    fs::create_directory(directory.path() / "sub");
    test::write_file(directory.path() / "sub/mine", "x");
    fs::create_symlink(outside.path(), directory.path() / "link");
    fs::create_hard_link(outside.path() / "other", directory.path() / "hard");
    CHECK(give_tree(directory.path(), 1234567, 1234567) == 0);
    const auto owner = [](const fs::path& path) {
        struct stat info {};
        lstat(path.c_str(), &info);
        return info.st_uid;
    };
    CHECK(owner(directory.path()) == 1234567);
    CHECK(owner(directory.path() / "sub/mine") == 1234567);
    CHECK(owner(directory.path() / "link") == 1234567);
    CHECK(owner(outside.path()) == 0);
    CHECK(owner(outside.path() / "other") == 0);
}

TEST_CASE("the usage of a tree of processes grows with its work") {
    const TreeUsage usage = usage_of_tree(getppid());
    CHECK(usage.processes >= 1);
    CHECK(usage.rss_bytes > 1 << 20);
    CHECK(usage_of_tree(-1).processes == 0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::runner
