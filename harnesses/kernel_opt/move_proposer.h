#pragma once
// The model as a chooser among legal moves: one agent a task, one forced `kernel_try` call a turn.

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "agent/agent.h"
#include "harnesses/kernel_opt/kernel_tools.h"
#include "harnesses/kernel_opt/optimise.h"
#include "tools/registry.h"

namespace skein::harnesses {

class MoveProposer {
  public:
    /// Requires: side.model and side.recorder. Lifetime: session and side's parts outlive this.
    MoveProposer(KernelSession& session, const OptimiseOptions& options, const ModelSide& side);

    /// Tells the model what happened since its last turn, offers the legal moves, and grades its
    /// choice. Throws: std::runtime_error when the engine failed.
    boost::asio::awaitable<void> propose();
    bool usable() const { return !ended_; }  ///< false once its context or a limit is used up
    int proposed() const { return proposed_; }
    agent::Usage finish();

  private:
    std::string news() const;

    KernelSession& session_;
    std::size_t moves_shown_;
    SearchRng rng_;
    Offer offer_;
    bool submitted_ = false;
    tools::Registry registry_;
    std::unique_ptr<agent::Agent> agent_;
    std::size_t told_ = 0;  ///< evaluations the model already knows of
    int proposed_ = 0;
    std::optional<agent::ExitStatus> ended_;
};

}  // namespace skein::harnesses
