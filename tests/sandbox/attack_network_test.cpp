// Cases 36-41: ways out. The listeners are alive outside, so a refusal is the sandbox's work.

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/sandbox/support.h"

namespace skein::sandbox::test {
namespace {

class Listener {
  public:
    Listener(int family, const void* address, std::size_t size)
        : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        REQUIRE(bind(fd_, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) ==
                0);
        REQUIRE(listen(fd_, 4) == 0);
    }
    ~Listener() { close(fd_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    int port() const {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
        return ntohs(address.sin_port);
    }

  private:
    int fd_;
};

sockaddr_in loopback() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

TEST_SUITE_BEGIN("sandbox/attack_network");

TEST_CASE("36: TCP, names and echo requests are refused at once") {
    const sockaddr_in address = loopback();
    const Listener listener(AF_INET, &address, sizeof address);
    const ProcessResult direct = run(attack({"network", std::to_string(listener.port())}));
    CHECK(verdict(direct, "tcp to the host") == "ECONNREFUSED");
    CHECK(verdict(direct, "tcp out") == "ENETUNREACH");
    const ProcessResult result =
        run(bash("(echo >/dev/tcp/93.184.216.34/80) 2>&1; getent hosts example.org; echo $?"));
    CHECK(result.out.text().find("Network is unreachable") != std::string::npos);
    CHECK(result.out.text().rfind("\n2\n") != std::string::npos);
    CHECK(result.wall_time < std::chrono::seconds(5));
}

TEST_CASE("37: UDP, multipath TCP and raw sockets are refused") {
    const sockaddr_in address = loopback();
    const Listener listener(AF_INET, &address, sizeof address);
    const ProcessResult result = run(attack({"network", std::to_string(listener.port())}));
    CHECK(verdict(result, "udp out") == "ENETUNREACH");
    CHECK(verdict(result, "mptcp to the host") != "ok");
    CHECK(verdict(result, "raw") == "EPERM");
}

TEST_CASE("38: socket files of the host are not visible") {
    const TemporaryDirectory directory;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory.path() / "service";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const Listener listener(AF_UNIX, &address, sizeof address);
    CHECK(verdict(run(attack({"path", path})), "path") == "ENOENT");
    CHECK(run(bash("ls /run /var/run 2>/dev/null | grep -v -e skein -e :")).out.text().empty());
}

TEST_CASE("39: abstract sockets of the host are refused") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "skein-abstract-" + std::to_string(getpid());
    name.copy(address.sun_path + 1, sizeof address.sun_path - 2);
    const Listener listener(AF_UNIX, &address, offsetof(sockaddr_un, sun_path) + 1 + name.size());
    CHECK(verdict(run(attack({"abstract", name})), "abstract") == "ECONNREFUSED");
}

TEST_CASE("40: socket families beside unix and internet do not exist") {
    const ProcessResult result = run(attack({"sockets"}));
    for (const char* family : {"netlink", "packet", "alg", "vsock", "xdp", "bluetooth", "can",
                               "tipc", "key", "vsock with high bits"}) {
        CAPTURE(family);
        CHECK(verdict(result, family) == "EAFNOSUPPORT");
    }
    CHECK(verdict(result, "unix") == "ok");
}

TEST_CASE("the own loopback works, so that servers can be tested inside") {
    CHECK(run(bash("python3 -c '\n"
                   "import socket\n"
                   "s = socket.create_server((\"127.0.0.1\", 0))\n"
                   "c = socket.create_connection(s.getsockname())\n"
                   "print(\"connected\")'"))
              .out.text() == "connected\n");
}

TEST_SUITE_END();

}  // namespace
}  // namespace skein::sandbox::test
