#include "tools/workspace.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/support/temporary_directory.h"

using namespace skein;
using tools::Workspace;
using tools::WorkspaceError;
namespace fs = std::filesystem;

namespace {

// The message of a refusal, or "" when the act went through.
template <class Act>
std::string refusal(Act act) {
    try {
        act();
    } catch (const WorkspaceError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

// Memory where there is some, for tests that would mostly wait for the disk.
fs::path fast_base() {
    return fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// A workspace with a secret beside it.
struct Fixture {
    test::TemporaryDirectory directory;
    fs::path root = directory / "ws", secret = directory / "secret.txt";
    explicit Fixture(const fs::path& base = fs::temp_directory_path()) : directory(base) {
        fs::create_directories(root);
        test::put_file(secret, "secret");
    }
};

}  // namespace

TEST_SUITE("tools/workspace") {
    TEST_CASE("files are written, read, listed and walked") {
        Fixture f;
        const Workspace workspace(f.root);
        CHECK(workspace.write("a/b/c.txt", "hello"));
        CHECK_FALSE(workspace.write("a/b/c.txt", "hello again"));
        CHECK(workspace.write("top.txt", ""));
        CHECK(workspace.read("a/b/c.txt") == "hello again");
        CHECK(workspace.read("./a//b/../b/c.txt") == "hello again");
        CHECK(workspace.read((f.root / "a/b/c.txt").string()) == "hello again");
        CHECK(workspace.exists("a"));
        CHECK(workspace.is_directory("a"));
        CHECK_FALSE(workspace.exists("b"));
        const auto entries = workspace.list("");
        REQUIRE(entries.size() == 2);
        CHECK(entries[0].name == "a");
        CHECK(entries[0].kind == 'd');
        CHECK(entries[1].kind == 'f');
        const auto tree = workspace.walk(".", 100);
        REQUIRE(tree.entries.size() == 4);
        CHECK(tree.entries[2].name == "a/b/c.txt");
        CHECK(tree.entries[2].bytes == 11);
        CHECK(tree.incomplete.empty());
        CHECK(workspace.walk("a/", 100).entries.front().name == "a/b");
        CHECK(contains(workspace.walk(".", 2).incomplete, "2 entries"));
        CHECK(fs::exists(f.root / "a/b"));
        for (const auto& entry : fs::recursive_directory_iterator(f.root)) {
            CHECK(entry.path().filename().string().find(".skein") == std::string::npos);
        }
    }

    TEST_CASE("a root that is no directory is refused") {
        Fixture f;
        CHECK_THROWS_AS(Workspace(f.secret), WorkspaceError);
        CHECK_THROWS_AS(Workspace(f.root / "absent"), WorkspaceError);
    }

    TEST_CASE("62: paths that leave the workspace are refused, for reading and writing") {
        Fixture f;
        const Workspace workspace(f.root);
        fs::create_directories(f.root / "a");
        const std::string sibling = f.root.string() + "-other/x";
        for (const std::string& path :
             {std::string("../secret.txt"), std::string("a/../../secret.txt"), f.secret.string(),
              sibling, std::string("/etc/passwd"), (f.root / "../secret.txt").string(),
              std::string("..")}) {
            CAPTURE(path);
            CHECK(contains(refusal([&] { workspace.read(path); }), "workspace"));
            CHECK(refusal([&] { workspace.write(path, "x"); }) != "");
            CHECK(refusal([&] { workspace.list(path); }) != "");
        }
        CHECK(contains(refusal([&] { workspace.read(std::string_view("a\0b", 3)); }), "NUL"));
        CHECK(test::get_file(f.secret) == "secret");
        CHECK(refusal([&] { workspace.write("new/../../x", "x"); }) != "");
        CHECK_FALSE(fs::exists(f.directory / "x"));
    }

    TEST_CASE("63, F08, F09: links out are refused with both names, also higher up and dangling") {
        Fixture f;
        const Workspace workspace(f.root);
        fs::create_directories(f.directory / "sibling");
        fs::create_symlink("../secret.txt", f.root / "notes.txt");
        fs::create_symlink(f.secret, f.root / "absolute");
        fs::create_symlink("../sibling", f.root / "out");
        fs::create_symlink("../sibling/absent", f.root / "dangling");
        for (const char* path : {"notes.txt", "absolute", "dangling"}) {
            CAPTURE(path);
            const std::string reading = refusal([&] { workspace.read(path); });
            const std::string writing = refusal([&] { workspace.write(path, "x"); });
            const std::string target = fs::read_symlink(f.root / path).string();
            CHECK(contains(reading, path));
            CHECK(contains(reading, target));
            CHECK(contains(writing, target));
        }
        CHECK(contains(refusal([&] { workspace.write("out/new/x.txt", "x"); }), "../sibling"));
        CHECK(contains(refusal([&] { workspace.read("out/x.txt"); }), "\"out\" is a link to"));
        CHECK(refusal([&] { workspace.list("out"); }) != "");
        CHECK(test::get_file(f.secret) == "secret");
        CHECK(fs::is_empty(f.directory / "sibling"));
        CHECK(fs::is_symlink(f.root / "notes.txt"));
        CHECK(workspace.walk(".", 100).entries.size() == 4);
    }

    TEST_CASE(
        "links inside the workspace lead through directories but are never replaced themselves") {
        Fixture f;
        const Workspace workspace(f.root);
        workspace.write("real/file.txt", "x");
        fs::create_symlink("real", f.root / "way");
        fs::create_symlink("real/file.txt", f.root / "link.txt");
        CHECK(workspace.read("way/file.txt") == "x");
        CHECK_FALSE(workspace.write("way/file.txt", "y"));
        CHECK(contains(refusal([&] { workspace.read("link.txt"); }), "name the file itself"));
        CHECK(contains(refusal([&] { workspace.write("link.txt", "z"); }), "real/file.txt"));
        CHECK(contains(refusal([&] { workspace.read("way/fill.txt"); }), "no such file"));
        CHECK(workspace.read("real/file.txt") == "y");
    }

    TEST_CASE("64, F10: a directory swapped for a link in a loop lets no byte in or out") {
        Fixture f;
        const Workspace workspace(f.root);
        const fs::path outside = f.directory / "outside";
        fs::create_directories(outside);
        test::put_file(outside / "f", "outside");
        workspace.write("d/f", "inside");
        fs::create_symlink(outside, f.root / "link");
        std::atomic<bool> stop = false;
        std::thread swapper([&] {
            const std::string a = (f.root / "d").string(), b = (f.root / "link").string();
            while (!stop) ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
        });
        int leaks = 0, through = 0;
        for (int round = 0; round < 500; ++round) {
            refusal([&] {
                leaks += workspace.read("d/f") == "outside" ? 1 : 0;
                ++through;
            });
            refusal([&] { workspace.write("d/f", "inside"); });
        }
        stop = true;
        swapper.join();
        MESSAGE("reads that went through: ", through);
        CHECK(leaks == 0);
        CHECK(test::get_file(outside / "f") == "outside");
        CHECK(std::distance(fs::directory_iterator(outside), {}) == 1);
    }

    TEST_CASE("65: magic links are refused") {
        const Workspace proc("/proc");
        CHECK(refusal([&] { proc.read("self/root/etc/passwd"); }) != "");
        CHECK(refusal([&] { proc.read("self/cwd/x"); }) != "");
        CHECK(refusal([&] { proc.read("self/fd/0"); }) != "");
    }

    TEST_CASE("66, F07: a file with several names may be read but not written") {
        Fixture f;
        const Workspace workspace(f.root);
        workspace.write("a", "x");
        fs::create_hard_link(f.root / "a", f.root / "b");
        CHECK(workspace.read("b") == "x");
        CHECK(contains(refusal([&] { workspace.write("b", "y"); }), "2 names (hard links)"));
        CHECK(workspace.read("a") == "x");
    }

    TEST_CASE("67: pipes, sockets, devices and directories are refused without blocking") {
        Fixture f;
        const Workspace workspace(f.root);
        REQUIRE(::mkfifo((f.root / "pipe").c_str(), 0600) == 0);
        const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string name = (f.root / "socket").string();
        REQUIRE(name.size() < sizeof address.sun_path);
        name.copy(address.sun_path, name.size());
        REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        for (const char* path : {"pipe", "socket"}) {
            CAPTURE(path);
            CHECK(contains(refusal([&] { workspace.read(path); }), "not a regular file"));
            CHECK(contains(refusal([&] { workspace.write(path, "x"); }), "not a regular file"));
        }
        ::close(socket);
        CHECK(contains(refusal([&] { workspace.read("."); }), "directory"));
        CHECK(contains(refusal([&] { workspace.write("dir/", "x"); }), "directory"));
        CHECK(contains(refusal([&] { Workspace("/dev").read("zero"); }), "not a regular file"));
        CHECK(workspace.list(".").front().kind == 'o');
    }

    TEST_CASE("68: a deep tree is walked to a bound with few descriptors") {
        Fixture f(fast_base());
        const fs::path before = fs::current_path();
        fs::current_path(f.root);
        for (int i = 0; i < 200; ++i) {
            REQUIRE(::mkdir("d", 0700) == 0);
            REQUIRE(::chdir("d") == 0);
        }
        fs::current_path(before);
        rlimit old{};
        ::getrlimit(RLIMIT_NOFILE, &old);
        const rlimit few{64, old.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
        const auto tree = Workspace(f.root).walk(".", 100000);
        ::setrlimit(RLIMIT_NOFILE, &old);
        CHECK(tree.entries.size() == 128);
        CHECK(contains(tree.incomplete, "128 levels"));
    }

    TEST_CASE("69: odd names are listed byte for byte and can be used") {
        Fixture f;
        const Workspace workspace(f.root);
        const std::string names[] = {
            "-rf", "a\nb", "bell\x1b[2J", "bad\xff", std::string(255, 'n'), " end "};
        for (const std::string& name : names) {
            CAPTURE(name);
            CHECK(workspace.write(name, name));
            CHECK(workspace.read(name) == name);
        }
        CHECK(workspace.list(".").size() == std::size(names));
        CHECK(contains(refusal([&] { workspace.write(std::string(256, 'n'), ""); }), "long"));
    }

    TEST_CASE("70: a result read by the host is bounded, also when it is sparse") {
        Fixture f;
        const Workspace workspace(f.root);
        workspace.write("output.json", "");
        REQUIRE(::truncate((f.root / "output.json").c_str(), 1LL << 43) == 0);
        CHECK(contains(refusal([&] { workspace.read("output.json"); }),
                       "8796093022208 bytes, the limit is"));
        workspace.write("small", "12345");
        CHECK(workspace.read("small", 5) == "12345");
        CHECK(refusal([&] { workspace.read("small", 4); }) != "");
    }

    TEST_CASE("F07: the mode is kept, read-only is refused with the reason") {
        Fixture f;
        const Workspace workspace(f.root);
        for (const mode_t mode : {0755U, 0600U, 0640U}) {
            workspace.write("f", "x");
            REQUIRE(::chmod((f.root / "f").c_str(), mode) == 0);
            workspace.write("f", "longer than before");
            struct stat info {};
            REQUIRE(::stat((f.root / "f").c_str(), &info) == 0);
            CHECK((info.st_mode & 07777) == mode);
        }
        REQUIRE(::chmod((f.root / "f").c_str(), 0444) == 0);
        CHECK(contains(refusal([&] { workspace.write("f", "x"); }), "read-only (mode 0444)"));
        CHECK(workspace.read("f") == "longer than before");
        workspace.write("new", "x");
        struct stat info {};
        REQUIRE(::stat((f.root / "new").c_str(), &info) == 0);
        CHECK((info.st_mode & 07777) == 0644);
    }

    TEST_CASE("a file that changed since it was read is not overwritten") {
        Fixture f;
        const Workspace workspace(f.root);
        workspace.write("f", "one");
        const auto file = workspace.read_file("f");
        test::put_file(f.root / "f", "two!");
        CHECK(contains(refusal([&] { workspace.write("f", "three", &file.stamp); }), "changed"));
        CHECK(workspace.read("f") == "two!");
        fs::remove(f.root / "f");
        CHECK(contains(refusal([&] { workspace.write("f", "three", &file.stamp); }), "changed"));
        CHECK_FALSE(workspace.exists("f"));
    }

    TEST_CASE("F06: a writer killed at random leaves the file wholly old or wholly new") {
        Fixture f(fast_base());
        const Workspace workspace(f.root);
        const std::string old(4 << 20, 'o'), fresh(4 << 20, 'n');
        std::mt19937 random(11);
        CAPTURE("seed 11");
        for (int round = 0; round < 20; ++round) {
            workspace.write("big", old);
            const pid_t child = ::fork();
            if (child == 0) {
                for (;;) {
                    try {
                        workspace.write("big", fresh);
                    } catch (...) {
                        ::_exit(1);
                    }
                }
            }
            ::usleep(static_cast<useconds_t>(random() % 6000));
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
            const std::string now = workspace.read("big");
            const bool whole = now == old || now == fresh;
            CHECK(whole);
        }
        workspace.write("other", "x");
        CHECK(workspace.list(".").size() == 2);
    }

    TEST_CASE("F06: at the file size limit the old content stays and nothing is left behind") {
        Fixture f;
        const Workspace workspace(f.root);
        workspace.write("f", "old");
        const pid_t child = ::fork();
        if (child == 0) {
            ::signal(SIGXFSZ, SIG_IGN);
            const rlimit small{1000, 1000};
            ::setrlimit(RLIMIT_FSIZE, &small);
            const std::string why = refusal([&] { workspace.write("f", std::string(5000, 'x')); });
            ::_exit(contains(why, "size limit") ? 0 : 1);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        CHECK(status == 0);
        CHECK(workspace.read("f") == "old");
        CHECK(workspace.list(".").size() == 1);
    }

    TEST_CASE("a temporary file whose writer died is removed by the next write there") {
        Fixture f;
        const Workspace workspace(f.root);
        test::put_file(f.root / ".skein-write-0123456789abcdef", "left");
        workspace.write("f", "x");
        CHECK(workspace.list(".").size() == 1);
    }

    TEST_CASE("F11: exact bytes always work, a near name is only suggested") {
        Fixture f;
        const Workspace workspace(f.root);
        workspace.write("Shot 3\u202FPM.png", "1");
        workspace.write("cafe\u0301.txt", "2");
        workspace.write("caf\u00e9.txt", "3");
        CHECK(workspace.read("Shot 3\u202FPM.png") == "1");
        CHECK(workspace.read("cafe\u0301.txt") == "2");
        CHECK(workspace.read("caf\u00e9.txt") == "3");
        CHECK(
            contains(refusal([&] { workspace.read("Shot 3 PM.png"); }), R"("Shot 3\u202fPM.png")"));
        CHECK_FALSE(contains(refusal([&] { workspace.read("entirely different"); }), "nearest"));
    }
}
