#include "agent/deadline.h"

#include <doctest/doctest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include "tests/agent/agent_fixture.h"

namespace asio = boost::asio;
using skein::agent::run_until;
using std::chrono::steady_clock;

namespace {

asio::awaitable<void> nothing() { co_return; }

asio::awaitable<void> endless(bool& ended) {
    auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, steady_clock::time_point::max());
    try {
        auto wait = timer.async_wait(asio::use_awaitable);
        co_await std::move(wait);
    } catch (const boost::system::system_error&) {
        ended = true;
    }
}

}  // namespace

TEST_SUITE("agent/deadline") {
    TEST_CASE("deadline: work that ends in time is not touched") {
        CHECK_FALSE(skein::test::run_now(run_until(nothing(), std::nullopt)));
        CHECK_FALSE(skein::test::run_now(
            run_until(nothing(), steady_clock::now() + std::chrono::hours(1))));
    }

    TEST_CASE("deadline: work that does not end is cancelled and waited for") {
        bool ended = false;
        CHECK(skein::test::run_now(run_until(endless(ended), steady_clock::now())));
        CHECK(ended);
    }
}
