#include "harnesses/interrupt.h"

#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <exception>

namespace skein::harnesses {

void run_interruptible(boost::asio::awaitable<void> work) {
    boost::asio::io_context io(1);
    boost::asio::signal_set signals(io, SIGINT, SIGTERM);
    boost::asio::cancellation_signal cancel;
    int caught = 0;
    std::exception_ptr failure;

    signals.async_wait([&](const boost::system::error_code& error, int number) {
        if (error) return;
        caught = number;
        cancel.emit(boost::asio::cancellation_type::terminal);
        // Whoever signals twice does not want to wait.
        signals.async_wait([](const boost::system::error_code& again, int second) {
            if (!again) _exit(128 + second);
        });
    });
    auto done = [&](std::exception_ptr error) {
        failure = error;
        signals.cancel();
    };
    boost::asio::co_spawn(io, std::move(work),
                          boost::asio::bind_cancellation_slot(cancel.slot(), done));
    io.run();
    if (caught != 0) throw Interrupted(caught);
    if (failure) std::rethrow_exception(failure);
}

}  // namespace skein::harnesses
