#include "agent/deadline.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace skein::agent {

boost::asio::awaitable<bool> run_until(
    boost::asio::awaitable<void> work,
    std::optional<std::chrono::steady_clock::time_point> deadline) {
    using namespace boost::asio::experimental::awaitable_operators;
    if (!deadline) {
        co_await std::move(work);
        co_return false;
    }
    auto executor = co_await boost::asio::this_coro::executor;
    boost::asio::steady_timer timer(executor, *deadline);
    auto alarm = timer.async_wait(boost::asio::use_awaitable);
    auto either = std::move(work) || std::move(alarm);
    const auto first = co_await std::move(either);
    co_return first.index() == 1;
}

}  // namespace skein::agent
