// The grader as the harness sees it: a client of the program `skein-grader`.
//
// Four parties, none in the same process: the harness (model, search, tools), the grader, the
// oracle with the expected values, and the candidate. What a candidate may try, and what stops it:
//
//   threat                         countermeasure
//   replace or slow the clock      the grader reads its own; a kernel that defines one is a hack
//   return before the work is done outputs are copied at `done`; a return after it is a hack
//   finish in another thread       seccomp refuses threads and processes; threads are counted;
//                                  symbols are checked
//   work outside the timed span    inputs hold wrong bytes until the clock starts; processor time
//                                  from sleep to sleep may not exceed the span
//   write nothing and hope         outputs hold a new poison pattern before every call
//   remember by address            the next call has one element changed at the same address
//   remember by content            a process sees no timed input set twice and lives for few calls
//   behave only when checked       every call is checked, timed ones too; warm-ups look the same
//   know the shapes or the seed    held-out shapes; seeds derive from a secret it never sees
//   read the expected values       they live in the oracle's and the grader's memory only
//   change the inputs              sealed memory, mapped read-only; the fault is named
//   write next to the output       guard pages, and a poisoned margin
//   exit(0), forged results        nothing the candidate writes or returns is a result
//   read or leave files            its own mount namespace with nothing in it
//   borrow a library               imports and needed libraries of the built file are checked
//   lower precision, zeros         error against a double oracle, scaled by row, bounded by the
//                                  anchor's own noise
//   drive a shape's time to zero   below the machine's limit a time is invalid
//   slow the anchor                it has its own process; pairs are interleaved in random order
//   attack the compiler            it runs in a sandbox; flags are a list

#include "harnesses/kernel_opt/grader.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <stdexcept>
#include <system_error>

#include "harnesses/kernel_opt/grader_core.h"
#include "harnesses/kernel_opt/grader_protocol.h"
#include "tools/profiler/program_path.h"

namespace skein::harnesses {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::chrono::seconds kOpenTimeout{180};
constexpr std::chrono::seconds kLeaveTimeout{10};

/// The program and our end of the socket that is its stdin and stdout. A socket, because writing to
/// one whose other end is gone is an error where a pipe would be a signal.
class GraderProcess {
  public:
    explicit GraderProcess(const std::filesystem::path& program) {
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throw std::system_error(errno, std::generic_category(), "socketpair");
        }
        fd_ = ends[0];
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        // A session of its own: an interrupt typed at the harness is the harness's to handle.
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        std::string name = program.string();
        std::array<char*, 2> argv{name.data(), nullptr};
        std::string path = "PATH=/usr/bin:/bin", locale = "LC_ALL=C.UTF-8";
        std::array<char*, 3> environment{path.data(), locale.data(), nullptr};
        const int error = posix_spawn(&pid_, name.c_str(), &actions, &attributes, argv.data(),
                                      environment.data());
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        close(ends[1]);
        if (error == 0) return;
        close(fd_);
        throw std::runtime_error(
            fmt::format("{} cannot be started: {}", name, std::generic_category().message(error)));
    }

    ~GraderProcess() {
        close(fd_);  // it leaves, whatever it is doing
        const int ended = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
        pollfd watched{ended, POLLIN, 0};
        const auto timeout = std::chrono::milliseconds(kLeaveTimeout).count();
        if (ended < 0 || poll(&watched, 1, static_cast<int>(timeout)) == 0) stop();
        if (ended >= 0) close(ended);
        waitpid(pid_, nullptr, 0);
    }
    GraderProcess(const GraderProcess&) = delete;

    int fd() const { return fd_; }
    void stop() { kill(pid_, SIGKILL); }

  private:
    pid_t pid_ = -1;
    int fd_ = -1;
};

json::object parse_answer(std::string_view line) {
    json::object answer = json::parse(json::string_view(line.data(), line.size())).as_object();
    if (const auto* error = answer.if_contains("error")) {
        throw std::runtime_error(json::value_to<std::string>(*error));
    }
    return answer;
}

class RemoteGrader : public Grader {
  public:
    RemoteGrader(const KernelTask& task, const GraderOptions& options)
        : scratch_(options.scratch),
          process_(options.grader_program.empty() ? tools::helper_program("skein-grader")
                                                  : options.grader_program) {
        const json::object request{{"open", open_request(task, options)}};
        ask_blocking(json::serialize(request) + "\n");
    }

    ~RemoteGrader() override {
        std::error_code ignored;
        std::filesystem::remove_all(scratch_, ignored);
    }

    asio::awaitable<Verdict> grade(Candidate candidate, Stage stage) override {
        json::object body = to_json(candidate);
        body["stage"] = to_string(stage);
        json::object request{{"grade", std::move(body)}};
        const json::object answer = co_await ask(std::move(request));
        co_return verdict_from_json(answer.at("verdict").as_object());
    }

    asio::awaitable<void> prepare(std::vector<Candidate> candidates) override {
        json::array list;
        for (const Candidate& candidate : candidates) list.push_back(to_json(candidate));
        json::object request{{"prepare", std::move(list)}};
        co_await ask(std::move(request));
    }

    asio::awaitable<Verdict> self_trial() override {
        json::object request{{"self_trial", nullptr}};
        const json::object answer = co_await ask(std::move(request));
        co_return verdict_from_json(answer.at("verdict").as_object());
    }

    asio::awaitable<std::vector<std::string>> admission_failures() override {
        json::object request{{"admission", nullptr}};
        const json::object answer = co_await ask(std::move(request));
        co_return json::value_to<std::vector<std::string>>(answer.at("failures"));
    }

  private:
    asio::awaitable<json::object> ask(json::object request) {
        if (broken_) throw std::runtime_error("the grader was stopped in the middle of an answer");
        broken_ = true;  // until the answer is complete; a cancelled question leaves it so
        const auto executor = co_await asio::this_coro::executor;
        using asio::local::stream_protocol;
        stream_protocol::socket socket(executor, stream_protocol(), dup(process_.fd()));
        const std::string line = json::serialize(request) + "\n";
        std::string answer;
        try {
            co_await asio::async_write(socket, asio::buffer(line), asio::use_awaitable);
            auto growing = asio::dynamic_buffer(answer);
            co_await asio::async_read_until(socket, growing, '\n', asio::use_awaitable);
        } catch (const boost::system::system_error& error) {
            process_.stop();
            throw std::runtime_error(fmt::format("the grader process is gone: {}", error.what()));
        }
        broken_ = false;
        co_return parse_answer(answer);
    }

    /// Before any executor exists. The request is short and fits the socket's buffer.
    void ask_blocking(const std::string& line) {
        if (send(process_.fd(), line.data(), line.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(line.size())) {
            throw std::runtime_error("the grader process does not listen");
        }
        std::string answer;
        while (!answer.ends_with('\n')) {
            pollfd ready{process_.fd(), POLLIN, 0};
            const auto timeout = std::chrono::milliseconds(kOpenTimeout).count();
            std::array<char, 4096> chunk{};
            const bool readable = poll(&ready, 1, static_cast<int>(timeout)) > 0;
            const ssize_t n = readable ? read(process_.fd(), chunk.data(), chunk.size()) : 0;
            if (n <= 0) {
                throw std::runtime_error(readable
                                             ? "the grader process ended before it was ready"
                                             : fmt::format("the grader was not ready within {} s",
                                                           kOpenTimeout.count()));
            }
            answer.append(chunk.data(), static_cast<std::size_t>(n));
        }
        parse_answer(answer);
    }

    std::filesystem::path scratch_;
    GraderProcess process_;
    bool broken_ = false;
};

}  // namespace

std::unique_ptr<Grader> make_grader(const KernelTask& task, sandbox::Sandbox& sandbox,
                                    GraderOptions options) {
    // The grader's own sandboxes need what this one needs; say so before a process is started.
    const sandbox::ProbeReport& report = sandbox.probe();
    if (report.level != sandbox::Level::full) {
        throw std::runtime_error(fmt::format(
            "grading needs the sandbox level full, this machine offers {}; see skein doctor",
            sandbox::to_string(report.level)));
    }
    return std::make_unique<RemoteGrader>(task, options);
}

}  // namespace skein::harnesses
