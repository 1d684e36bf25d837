#include "harnesses/kernel_opt/move_proposer.h"

#include <fmt/format.h>

#include <stdexcept>

namespace skein::harnesses {
namespace {

std::string instruction(const KernelTask& task) {
    return fmt::format(
        "You make a C++ kernel faster: {}. Each turn, choose one move and call kernel_try. "
        "Larger speedups are better.",
        task.title);
}

}  // namespace

MoveProposer::MoveProposer(KernelSession& session, const OptimiseOptions& options,
                           const ModelSide& side)
    : session_(session), moves_shown_(options.moves_shown), rng_(options.seed * 2 + 3) {
    registry_.add(make_kernel_moves_tool(session_, offer_));
    registry_.add(make_kernel_try_move_tool(session_, offer_));
    registry_.add(make_kernel_submit_tool(session_, submitted_));
    agent::AgentConfig config;
    config.name = "move_proposer";
    config.instruction = instruction(session_.task());
    config.limits = options.limits;
    config.sampling = options.sampling;
    config.thinking = options.thinking;
    config.task_id = session_.task().id;
    agent_ = std::make_unique<agent::Agent>(std::move(config), *side.model, registry_,
                                            *side.recorder, side.events);
}

std::string MoveProposer::news() const {
    std::string text;
    const KernelGenerator& generator = *session_.generator();
    const auto& all = session_.evaluations();
    for (std::size_t i = told_; i < all.size(); ++i) {
        if (all[i].arm != Arm::main || all[i].proposer == "model") continue;
        text += describe(generator, all[i].configuration) + ": " +
                (all[i].verdict.timed() ? fmt::format("{:.2f} x", all[i].verdict.speedup)
                                        : std::string(to_string(all[i].verdict.status))) +
                "\n";
    }
    return text;
}

boost::asio::awaitable<void> MoveProposer::propose() {
    offer_ = offer_moves(session_, moves_shown_, rng_);
    if (offer_.moves.empty()) {
        ended_ = agent::ExitStatus::finished;
        co_return;
    }
    const KernelGenerator& generator = *session_.generator();
    const std::string tried = news();
    std::string text =
        fmt::format("{}{}Best: {}\nLegal moves:", tried.empty() ? "" : "Tried since:\n", tried,
                    describe(generator, offer_.from));
    for (const Move& move : offer_.moves) {
        text += ' ';
        text += move_name(generator, move);
    }
    told_ = session_.evaluations().size();
    agent_->say(std::move(text));
    const tools::ToolSpec spec = try_spec(generator, offer_.moves);
    agent::TurnOptions turn;
    turn.force_call = {&spec};
    const int before = session_.count(Arm::main);
    auto pending = agent_->step(std::move(turn));
    const agent::Agent::StepResult step = co_await std::move(pending);
    session_.rethrow_failure();
    proposed_ += session_.count(Arm::main) - before;
    told_ = session_.evaluations().size();
    if (step.ended) ended_ = step.ended;
    if (ended_ == agent::ExitStatus::engine_error) {
        throw std::runtime_error("the model's engine failed while choosing a move for " +
                                 session_.task().id);
    }
}

agent::Usage MoveProposer::finish() {
    const auto status = ended_.value_or(agent::ExitStatus::finished);
    return agent_->finish(status, "").usage;
}

}  // namespace skein::harnesses
