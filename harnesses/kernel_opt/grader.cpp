// The grader as the harness sees it: a client of the program `skein-grader`.
//
// Four parties, none in the same process: the harness (model, search, tools), the grader, the oracle
// with the expected values, and the candidate. What a candidate may try, and what stops it:
//
//   threat                                  countermeasure
//   replace or slow the clock               the grader reads its own; a kernel that defines a clock is a hack
//   return before the work is done          outputs are copied out at `done`; host stamps after it are a hack
//   finish in another thread or process     seccomp refuses both; threads are counted; symbols are checked
//   work before or after the timed span     inputs hold wrong bytes until the clock starts; processor time
//                                           from sleep to sleep may not exceed the span
//   write nothing and hope                  outputs hold a new poison pattern before every call
//   remember by address                     the next call has one element changed at the same address
//   remember by content                     a process sees no input set twice and lives for a few calls
//   behave only when checked                every call is checked, timed ones too; warm-ups look the same
//   know the shapes or the seed             held-out shapes; seeds derive from a secret in this process pair
//   read the expected values                they live in the oracle's and the grader's memory only
//   change the inputs                       sealed memory, mapped read-only; the fault is named
//   write next to the output                guard pages, and a poisoned margin
//   exit(0), forged results                 nothing the candidate writes or returns is a result
//   read or leave files                     its own mount namespace with nothing in it
//   borrow a library                        imports and needed libraries of the built file are checked
//   lower precision, zeros                  error against a double oracle, scaled by row, bounded by the
//                                           anchor's own noise
//   drive one shape's time to nothing       below the machine's limit a time is invalid
//   slow the anchor                         it has its own process; pairs are interleaved in random order
//   attack the compiler                     it runs in a sandbox; flags are a list

#include "harnesses/kernel_opt/grader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
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

/// The program and our ends of its stdin and stdout.
class GraderProcess {
  public:
    explicit GraderProcess(const std::filesystem::path& program) {
        std::array<int, 2> in{}, out{};
        if (pipe2(in.data(), O_CLOEXEC) != 0) fail("pipe");
        if (pipe2(out.data(), O_CLOEXEC) != 0) fail("pipe");
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        posix_spawn_file_actions_addclosefrom_np(&actions, 3);
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
        close(in[0]);
        close(out[1]);
        to_ = in[1];
        from_ = out[0];
        if (error != 0) {
            close(to_);
            close(from_);
            throw std::runtime_error(fmt::format("{} cannot be started: {}", name,
                                                 std::generic_category().message(error)));
        }
    }

    ~GraderProcess() {
        close(to_);  // it leaves at the end of its input
        pollfd ended{from_, POLLIN, 0};
        const auto timeout = std::chrono::milliseconds(kLeaveTimeout).count();
        if (poll(&ended, 1, static_cast<int>(timeout)) == 0) kill(pid_, SIGKILL);
        close(from_);
        waitpid(pid_, nullptr, 0);
    }
    GraderProcess(const GraderProcess&) = delete;

    int to() const { return to_; }
    int from() const { return from_; }
    void stop() { kill(pid_, SIGKILL); }

  private:
    [[noreturn]] static void fail(const char* what) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1;
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
        asio::posix::stream_descriptor to(executor, dup(process_.to()));
        asio::posix::stream_descriptor from(executor, dup(process_.from()));
        const std::string line = json::serialize(request) + "\n";
        std::string answer;
        try {
            co_await asio::async_write(to, asio::buffer(line), asio::use_awaitable);
            auto growing = asio::dynamic_buffer(answer);
            co_await asio::async_read_until(from, growing, '\n', asio::use_awaitable);
        } catch (const boost::system::system_error& error) {
            process_.stop();
            throw std::runtime_error(
                fmt::format("the grader process is gone: {}", error.what()));
        }
        broken_ = false;
        co_return parse_answer(answer);
    }

    /// Before any executor exists. The request is short and fits a pipe.
    void ask_blocking(const std::string& line) {
        if (write(process_.to(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
            throw std::runtime_error("the grader process does not listen");
        }
        std::string answer;
        while (!answer.ends_with('\n')) {
            pollfd ready{process_.from(), POLLIN, 0};
            const auto timeout = std::chrono::milliseconds(kOpenTimeout).count();
            std::array<char, 4096> chunk{};
            const bool readable = poll(&ready, 1, static_cast<int>(timeout)) > 0;
            const ssize_t n = readable ? read(process_.from(), chunk.data(), chunk.size()) : 0;
            if (n <= 0) {
                throw std::runtime_error(
                    readable ? "the grader process ended before it was ready"
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
