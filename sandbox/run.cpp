// The harness's side of one run. Three things end independently: the supervisor, and each stream.
// The run is over when the supervisor ended AND (both streams ended OR a short drain passed); end
// of file alone means nothing, because a command may close its output and go on, and a stream may
// be held open by somebody outside.

#include "sandbox/run.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include "sandbox/capture.h"
#include "sandbox/spawn.h"

namespace skein::sandbox {
namespace {

namespace asio = boost::asio;
using Executor = asio::any_io_executor;
using boost::system::error_code;

constexpr std::chrono::milliseconds kDrain{250};
// The supervisor owns the deadline; this is for a supervisor that does not answer any more.
constexpr std::chrono::seconds kBackup{30};
constexpr std::size_t kReadBytes = 128 << 10;

struct Stream {
    asio::posix::stream_descriptor descriptor;
    Capture capture;
    std::vector<char> buffer = std::vector<char>(kReadBytes);
    bool ended = false;
};

class Run : public std::enable_shared_from_this<Run> {
  public:
    Run(const Executor& strand, Spawned spawned, Command command, ResourceLimits limits)
        : command_(std::move(command)),
          limits_(limits),
          pid_(spawned.pid),
          handle_(strand, spawned.handle.release()),
          control_(strand, spawned.control.release()),
          streams_{Stream{{strand, spawned.out.release()}, {limits.keep_head, limits.keep_tail}},
                   Stream{{strand, spawned.err.release()}, {limits.keep_head, limits.keep_tail}}},
          backup_(strand),
          drain_(strand),
          done_(strand, asio::steady_timer::time_point::max()) {}

    /// Abandoned in mid-run (its io_context was destroyed): nothing of it may stay, nor a zombie.
    ~Run() {
        if (exited_) return;
        kill_supervisor();
        reap();
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void start() {
        auto self = shared_from_this();
        read(0);
        read(1);
        watch_control();
        handle_.async_wait(asio::posix::descriptor_base::wait_read,
                           [self](error_code) { self->on_supervisor_ended(); });
        backup_.expires_after(limits_.wall_time + kBackup);
        backup_.async_wait([self](error_code error) {
            if (!error && !self->exited_) self->kill_supervisor();
        });
    }

    void order(Order order) {
        if (ordered_ || exited_) return;
        ordered_ = true;
        send(control_.native_handle(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    bool finished() const { return finished_; }
    asio::steady_timer& done() { return done_; }

    /// Throws: what a callback of the command threw; the run was killed for it.
    ProcessResult take() {
        if (failure_) std::rethrow_exception(failure_);
        ProcessResult result = std::move(result_);
        const bool too_much = streams_[0].capture.total_bytes() > limits_.output_bytes ||
                              streams_[1].capture.total_bytes() > limits_.output_bytes;
        if (too_much && result.outcome != Outcome::setup_failed)
            result.outcome = Outcome::output_limit;
        result.out = std::move(streams_[0].capture).take();
        result.err = std::move(streams_[1].capture).take();
        return result;
    }

  private:
    template <class Callback>
    void guarded(Callback callback) {
        if (failure_) return;
        try {
            callback();
        } catch (...) {
            failure_ = std::current_exception();
            order(Order::kill);
        }
    }

    void read(std::size_t index) {
        Stream& stream = streams_[index];
        stream.descriptor.async_read_some(
            asio::buffer(stream.buffer),
            [self = shared_from_this(), index](error_code error, std::size_t n) {
                self->on_read(index, error, n);
            });
    }

    void on_read(std::size_t index, error_code error, std::size_t n) {
        Stream& stream = streams_[index];
        if (finished_) return;
        if (n > 0) {
            const std::string_view bytes(stream.buffer.data(), n);
            stream.capture.add(bytes);
            if (command_.on_output)
                guarded([&] { command_.on_output(static_cast<int>(index) + 1, bytes); });
            if (stream.capture.total_bytes() > limits_.output_bytes)
                order(Order::kill_output_limit);
        }
        if (!error) return read(index);
        stream.ended = true;
        maybe_finish();
    }

    void watch_control() {
        control_.async_wait(asio::posix::descriptor_base::wait_read,
                            [self = shared_from_this()](error_code error) {
                                if (!error && !self->exited_ && self->receive_reports())
                                    self->watch_control();
                            });
    }

    /// False once the supervisor closed its end.
    bool receive_reports() {
        for (;;) {
            std::array<char, 8192> packet;
            const ssize_t n =
                recv(control_.native_handle(), packet.data(), packet.size(), MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno == EAGAIN;
            if (n < static_cast<ssize_t>(sizeof(Report))) return false;
            Report report;
            std::memcpy(&report, packet.data(), sizeof report);
            on_report(report,
                      {packet.data() + sizeof report, static_cast<std::size_t>(n) - sizeof report});
        }
    }

    void on_report(const Report& report, std::string_view detail) {
        if (report.kind == Report::started) {
            if (command_.on_started) guarded([&] { command_.on_started(report.host_pid); });
            return;
        }
        have_report_ = true;
        result_.outcome = report.outcome <= static_cast<std::uint32_t>(Outcome::setup_failed)
                              ? static_cast<Outcome>(report.outcome)
                              : Outcome::setup_failed;
        result_.exit_code = report.exit_code;
        result_.signal = report.signal;
        result_.wall_time = std::chrono::microseconds(report.wall_us);
        result_.cpu_time = std::chrono::microseconds(report.cpu_us);
        result_.peak_rss_bytes = report.peak_rss_bytes;
        result_.left_processes = report.left_processes != 0;
        result_.detail = detail;
    }

    /// The supervisor leads a process group: also what bwrap has not handed over yet.
    void kill_supervisor() { ::kill(-pid_, SIGKILL); }

    void reap() {
        siginfo_t info{};
        waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED);
    }

    void on_supervisor_ended() {
        receive_reports();
        exited_ = true;
        if (!have_report_) {
            kill_supervisor();
            result_.outcome = ordered_ ? Outcome::killed : Outcome::setup_failed;
            result_.detail = "the sandbox supervisor was killed from outside";
        }
        reap();
        drain_.expires_after(kDrain);
        drain_.async_wait([self = shared_from_this()](error_code error) {
            if (!error) self->finish();
        });
        maybe_finish();
    }

    void maybe_finish() {
        if (exited_ && streams_[0].ended && streams_[1].ended) finish();
    }

    void finish() {
        if (finished_) return;
        finished_ = true;
        error_code ignored;
        for (Stream& stream : streams_) stream.descriptor.close(ignored);
        control_.close(ignored);
        handle_.close(ignored);
        backup_.cancel();
        drain_.cancel();
        done_.cancel();
    }

    Command command_;
    ResourceLimits limits_;
    int pid_;
    asio::posix::stream_descriptor handle_, control_;
    std::array<Stream, 2> streams_;
    asio::steady_timer backup_, drain_, done_;
    ProcessResult result_;
    std::exception_ptr failure_;
    bool ordered_ = false, have_report_ = false, exited_ = false, finished_ = false;
};

asio::awaitable<ProcessResult> run_on_strand(std::string runner, Plan plan, Command command,
                                             ResourceLimits limits, Level level,
                                             std::string extra_environment) {
    // We look for cancellation ourselves: a cancelled run still has to end in good order.
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    Executor strand = co_await asio::this_coro::executor;
    Spawned spawned = spawn_runner(runner, plan, command, extra_environment);
    auto run = std::make_shared<Run>(strand, std::move(spawned), std::move(command), limits);
    run->start();
    while (!run->finished()) {
        auto token = asio::as_tuple(asio::use_awaitable);
        co_await run->done().async_wait(token);
        if (!run->finished()) run->order(Order::kill);
    }
    ProcessResult result = run->take();
    result.level = level;
    co_return result;
}

}  // namespace

asio::awaitable<ProcessResult> run_plan(std::string runner, Plan plan, Command command,
                                        ResourceLimits limits, Level level,
                                        std::string extra_environment) {
    Executor executor = co_await asio::this_coro::executor;
    Executor strand = asio::make_strand(executor);
    auto work = run_on_strand(std::move(runner), std::move(plan), std::move(command), limits, level,
                              std::move(extra_environment));
    auto spawned = asio::co_spawn(strand, std::move(work), asio::use_awaitable);
    co_return co_await std::move(spawned);
}

ProcessResult complete(asio::awaitable<ProcessResult> work) {
    asio::io_context context;
    std::optional<ProcessResult> result;
    std::exception_ptr failure;
    asio::co_spawn(context, std::move(work), [&](std::exception_ptr error, ProcessResult value) {
        failure = error;
        result = std::move(value);
    });
    context.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(*result);
}

}  // namespace skein::sandbox
