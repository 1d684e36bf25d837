#pragma once
// Runs one coroutine to its end on this thread.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <utility>

namespace skein::test {

/// Runs a coroutine on a context of its own and gives its value or exception.
template <typename T>
T run_now(boost::asio::awaitable<T> work) {
    boost::asio::io_context context;
    std::optional<T> value;
    std::exception_ptr failure;
    boost::asio::co_spawn(context, std::move(work), [&](std::exception_ptr error, T result) {
        failure = error;
        if (!error) value = std::move(result);
    });
    context.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(*value);
}

inline void run_now(boost::asio::awaitable<void> work) {
    boost::asio::io_context context;
    std::exception_ptr failure;
    boost::asio::co_spawn(context, std::move(work),
                          [&](std::exception_ptr error) { failure = error; });
    context.run();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace skein::test
