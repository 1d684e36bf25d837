#pragma once
// Runs a coroutine to its end on this thread, with Ctrl-C and SIGTERM as a clean cancellation.

#include <boost/asio/awaitable.hpp>
#include <optional>

#include "harnesses/exit_code.h"

namespace skein::harnesses {

/// The run was interrupted; everything recorded is stored. Exit code 130 or 143.
class Interrupted : public std::runtime_error {
  public:
    explicit Interrupted(int signal)
        : std::runtime_error(signal == 15 ? "terminated" : "interrupted"), signal_number(signal) {}
    int signal_number;
};

/// Throws: Interrupted after SIGINT or SIGTERM, otherwise what `work` throws. A second signal ends
/// the process at once.
void run_interruptible(boost::asio::awaitable<void> work);

}  // namespace skein::harnesses
