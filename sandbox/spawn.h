#pragma once
// Starts one supervisor process. The only place where the library makes a process.

#include <string>

#include "sandbox/plan.h"
#include "sandbox/sandbox.h"

namespace skein::sandbox {

/// An open descriptor that closes itself.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();
    int get() const { return fd_; }
    int release() noexcept;

  private:
    int fd_ = -1;
};

/// A supervisor that runs, and our ends of its channels (non-blocking).
struct Spawned {
    int pid = -1;
    Descriptor handle;   ///< pidfd; readable when the supervisor ended
    Descriptor control;  ///< packets of plan.h; closing it kills the run
    Descriptor out, err;
};

/// Starts `runner run` with exactly the descriptors it needs, default signals, its own session and
/// an empty environment plus `extra_environment`.
/// Throws: Error when the system refuses (no runner, out of descriptors or processes).
Spawned spawn_runner(const std::string& runner, const Plan& plan, const Command& command,
                     const std::string& extra_environment = {});

}  // namespace skein::sandbox
