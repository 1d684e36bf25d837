#pragma once
// Runs work that is cancelled, and still waited for, when a point in time passes.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>

namespace skein::agent {

/// Returns whether the deadline cancelled `work`. Requires: `work` ends soon after a cancellation
/// and throws nothing; its results go to places it captured.
boost::asio::awaitable<bool> run_until(
    boost::asio::awaitable<void> work,
    std::optional<std::chrono::steady_clock::time_point> deadline);

}  // namespace skein::agent
