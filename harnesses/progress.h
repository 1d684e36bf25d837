#pragma once
// Progress on stderr: one rewritten line on a terminal, one line a step elsewhere; JSON on demand.

#include <chrono>
#include <string>

#include "agent/event.h"
#include "harnesses/kernel_opt/kernel_run.h"

namespace skein::harnesses {

class ProgressView {
  public:
    /// With `json`, events go to stdout as objects instead.
    explicit ProgressView(bool json);
    ~ProgressView();  ///< ends a rewritten line
    void kernel(const KernelProgress& progress);
    void agent(const agent::AgentEvent& event);
    void say(const std::string& line);

  private:
    void rewrite(const std::string& line);

    bool json_, terminal_, open_line_ = false;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// "1:05", "2:03:07"; "?" when negative.
std::string clock_text(double seconds);

}  // namespace skein::harnesses
