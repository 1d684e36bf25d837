#pragma once
// The harness's own tools: what a model may do to a kernel task. They act on a KernelSession only;
// grading, phases, paths and the stop stay with the runtime.

#include <memory>

#include "harnesses/kernel_opt/kernel_session.h"
#include "tools/tool.h"
#include "tools/workspace.h"

namespace skein::harnesses {

/// "dimension=value", the way moves are named to models and people.
std::string move_name(const KernelGenerator& generator, const Move& move);

/// Legal, untried moves from the best configuration so far (the anchor's when none is correct), at
/// most `limit` of them, drawn by `rng` and in the space's order.
struct Offer {
    Configuration from;
    std::vector<Move> moves;
};
Offer offer_moves(const KernelSession& session, std::size_t limit, SearchRng& rng);

/// The schema of a `kernel_try` call that can only name one of these moves.
tools::ToolSpec try_spec(const KernelGenerator& generator, const std::vector<Move>& moves);

/// `kernel_moves`, `kernel_try` (a move) and `kernel_submit` for the move space. `offer` is what
/// the last kernel_moves answer, or the harness, put on the table. Lifetime: both must outlive the
/// tools.
std::unique_ptr<tools::Tool> make_kernel_moves_tool(KernelSession& session, const Offer& offer);
std::unique_ptr<tools::Tool> make_kernel_try_move_tool(KernelSession& session, const Offer& offer);

/// `kernel_try` for a source file of the workspace, for models that edit code. `proposer` is
/// recorded.
std::unique_ptr<tools::Tool> make_kernel_try_file_tool(KernelSession& session,
                                                       const tools::Workspace& workspace,
                                                       std::string proposer, int max_evaluations);
/// Ends the model's work; sets `submitted`.
std::unique_ptr<tools::Tool> make_kernel_submit_tool(const KernelSession& session, bool& submitted);

/// What a model reads of an evaluation: two or three short lines.
std::string describe_for_model(const Evaluation& evaluation);

}  // namespace skein::harnesses
