#include "tools/profiler/sandbox_thread.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

namespace skein::tools {

SandboxThread::SandboxThread(sandbox::Sandbox& sandbox)
    : sandbox_(sandbox), work_(context_.get_executor()), thread_([this] { context_.run(); }) {}

SandboxThread::~SandboxThread() {
    work_.reset();
    thread_.join();  // ends when the last command is over
}

std::shared_ptr<RunningCommand> SandboxThread::start(sandbox::SandboxPolicy policy,
                                                     sandbox::Command command,
                                                     sandbox::ResourceLimits limits) {
    auto running = std::make_shared<RunningCommand>();
    command.on_started = [running](int pid) { running->pid = pid; };
    auto finish = [running](std::exception_ptr error, sandbox::ProcessResult result) {
        running->error = error;
        running->result = std::move(result);
        running->finished = true;
        running->over.set_value();
    };
    auto run = sandbox_.run(std::move(policy), std::move(command), limits);
    boost::asio::co_spawn(
        context_, std::move(run),
        boost::asio::bind_cancellation_slot(running->stop.slot(), std::move(finish)));
    return running;
}

void SandboxThread::stop(RunningCommand& running) {
    if (!running.finished) {
        // The signal belongs to the context's thread.
        boost::asio::post(context_, [&running] {
            if (!running.finished) running.stop.emit(boost::asio::cancellation_type::terminal);
        });
    }
    running.done.wait();
}

}  // namespace skein::tools
