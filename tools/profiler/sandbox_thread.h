#pragma once
// Sandboxed programs that run beside a caller who must not wait for them: the caller keeps the
// clock.

#include <atomic>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <future>
#include <memory>
#include <thread>

#include "sandbox/sandbox.h"

namespace skein::tools {

/// A command in flight. Threads: any; `result` may be read once `finished` is true.
struct RunningCommand {
    std::atomic<bool> finished{false};
    std::atomic<int> pid{-1};  ///< of the command itself, as this process sees it
    sandbox::ProcessResult result;
    std::exception_ptr error;  ///< the sandbox itself failed
    std::promise<void> over;
    std::shared_future<void> done{over.get_future()};
    boost::asio::cancellation_signal stop;
};

/// One thread that serves the pipes and deadlines of sandboxed commands.
class SandboxThread {
  public:
    /// Lifetime: `sandbox` must outlive this.
    explicit SandboxThread(sandbox::Sandbox& sandbox);
    ~SandboxThread();
    SandboxThread(const SandboxThread&) = delete;

    std::shared_ptr<RunningCommand> start(sandbox::SandboxPolicy policy, sandbox::Command command,
                                          sandbox::ResourceLimits limits);
    /// Kills it and waits until every process of it is gone.
    void stop(RunningCommand& running);
    sandbox::Sandbox& sandbox() { return sandbox_; }

  private:
    sandbox::Sandbox& sandbox_;
    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::thread thread_;
};

}  // namespace skein::tools
