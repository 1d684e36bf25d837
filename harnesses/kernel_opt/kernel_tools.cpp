#include "harnesses/kernel_opt/kernel_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value_to.hpp>

namespace skein::harnesses {
namespace {

boost::json::object no_arguments() {
    return {
        {"type", "object"}, {"properties", boost::json::object{}}, {"additionalProperties", false}};
}

const Evaluation* best_so_far(const KernelSession& session) {
    return session.best(Arm::main);
}

tools::ToolResult result_of(const Evaluation& evaluation) {
    tools::ToolResult result;
    result.status = evaluation.verdict.timed() ? tools::ToolStatus::ok : tools::ToolStatus::failed;
    result.text = describe_for_model(evaluation);
    result.details = to_json(evaluation.verdict, false);
    return result;
}

/// Grades for a tool. A failure of the grading itself ends the run; it is no answer to the model.
boost::asio::awaitable<tools::ToolResult> graded(KernelSession& session,
                                                 boost::asio::awaitable<Evaluation> grading) {
    try {
        const Evaluation evaluation = co_await std::move(grading);
        co_return result_of(evaluation);
    } catch (const std::exception& error) {
        session.set_failure(std::current_exception());
        tools::ToolResult result;
        result.status = tools::ToolStatus::harness_error;
        result.text = error.what();
        co_return result;
    }
}

class MovesTool : public tools::Tool {
  public:
    MovesTool(KernelSession& session, const Offer& offer) : session_(session), offer_(offer) {
        spec_ = {"kernel_moves", "List the legal changes of the best kernel so far.",
                 no_arguments(), tools::Effect::pure};
    }
    const tools::ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<tools::ToolResult> call(boost::json::object) override {
        const KernelGenerator& generator = *session_.generator();
        tools::ToolResult result;
        result.text = "best so far: " + describe(generator, offer_.from) + "\n";
        for (const Move& move : offer_.moves) {
            const auto& dimension =
                generator.dimensions()[static_cast<std::size_t>(move.dimension)];
            result.text += move_name(generator, move) + ": " + dimension.help + "\n";
        }
        co_return result;
    }

  private:
    KernelSession& session_;
    const Offer& offer_;
    tools::ToolSpec spec_;
};

class TryMoveTool : public tools::Tool {
  public:
    TryMoveTool(KernelSession& session, const Offer& offer) : session_(session), offer_(offer) {
        spec_ = {
            "kernel_try",
            "Apply one move to the best kernel, check and time the result.",
            {{"type", "object"},
             {"properties", {{"move", {{"type", "string"}, {"description", "dimension=value"}}}}},
             {"required", {"move"}},
             {"additionalProperties", false}},
            tools::Effect::idempotent_write};
    }
    const tools::ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<tools::ToolResult> call(boost::json::object arguments) override {
        const std::string wanted(arguments.at("move").as_string());
        const KernelGenerator& generator = *session_.generator();
        const auto found =
            std::find_if(offer_.moves.begin(), offer_.moves.end(),
                         [&](const Move& move) { return move_name(generator, move) == wanted; });
        if (found == offer_.moves.end()) {
            tools::ToolResult refused;
            refused.status = tools::ToolStatus::failed;
            refused.text = "'" + wanted + "' is not a legal move now; kernel_moves lists them";
            co_return refused;
        }
        Configuration at = offer_.from;
        at[static_cast<std::size_t>(found->dimension)] = found->value;
        auto grading = session_.evaluate(std::move(at), "model", Arm::main, Stage::time);
        auto pending = graded(session_, std::move(grading));
        co_return co_await std::move(pending);
    }

  private:
    KernelSession& session_;
    const Offer& offer_;
    tools::ToolSpec spec_;
};

class TryFileTool : public tools::Tool {
  public:
    TryFileTool(KernelSession& session, const tools::Workspace& workspace, std::string proposer,
                int max_evaluations)
        : session_(session),
          workspace_(workspace),
          proposer_(std::move(proposer)),
          max_evaluations_(max_evaluations) {
        boost::json::array flags;
        for (const std::string& flag : session.task().allowed_flags) flags.emplace_back(flag);
        boost::json::object properties{
            {"path", {{"type", "string"}, {"description", "the kernel's C++ file"}}}};
        if (!flags.empty()) {
            properties["flags"] = {{"type", "array"},
                                   {"description", "compiler flags to add"},
                                   {"items", {{"type", "string"}, {"enum", flags}}}};
        }
        spec_ = {"kernel_try",
                 "Build a kernel file, check it against the oracle and time it.",
                 {{"type", "object"},
                  {"properties", properties},
                  {"required", {"path"}},
                  {"additionalProperties", false}},
                 tools::Effect::idempotent_write};
    }
    const tools::ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<tools::ToolResult> call(boost::json::object arguments) override {
        tools::ToolResult result;
        if (session_.count(Arm::main) >= max_evaluations_) {
            result.status = tools::ToolStatus::failed;
            result.text =
                fmt::format("all {} evaluations are used; call kernel_submit", max_evaluations_);
            co_return result;
        }
        Candidate candidate;
        try {
            candidate.source = workspace_.read(arguments.at("path").as_string());
        } catch (const tools::WorkspaceError& error) {
            result.status = tools::ToolStatus::failed;
            result.text = error.what();
            co_return result;
        }
        if (const auto* flags = arguments.if_contains("flags")) {
            candidate.flags = boost::json::value_to<std::vector<std::string>>(*flags);
        }
        auto grading =
            session_.evaluate_source(std::move(candidate), proposer_, Arm::main, Stage::time);
        auto pending = graded(session_, std::move(grading));
        result = co_await std::move(pending);
        result.text += fmt::format("{} of {} evaluations left\n",
                                   max_evaluations_ - session_.count(Arm::main), max_evaluations_);
        co_return result;
    }

  private:
    KernelSession& session_;
    const tools::Workspace& workspace_;
    std::string proposer_;
    int max_evaluations_;
    tools::ToolSpec spec_;
};

class SubmitTool : public tools::Tool {
  public:
    SubmitTool(const KernelSession& session, bool& submitted)
        : session_(session), submitted_(submitted) {
        spec_ = {"kernel_submit", "Finish: the best correct kernel so far is the result.",
                 no_arguments(), tools::Effect::idempotent_write};
    }
    const tools::ToolSpec& spec() const override { return spec_; }

    boost::asio::awaitable<tools::ToolResult> call(boost::json::object) override {
        submitted_ = true;
        tools::ToolResult result;
        const Evaluation* best = best_so_far(session_);
        result.text = best == nullptr
                          ? "submitted: no correct kernel yet, the anchor stays"
                          : fmt::format("submitted: {:.2f} x the anchor", best->verdict.speedup);
        co_return result;
    }

  private:
    const KernelSession& session_;
    bool& submitted_;
    tools::ToolSpec spec_;
};

}  // namespace

std::string move_name(const KernelGenerator& generator, const Move& move) {
    const auto& dimension = generator.dimensions()[static_cast<std::size_t>(move.dimension)];
    return dimension.name + "=" + dimension.values[static_cast<std::size_t>(move.value)];
}

Offer offer_moves(const KernelSession& session, std::size_t limit, SearchRng& rng) {
    const KernelGenerator& generator = *session.generator();
    Offer offer;
    const Evaluation* best = best_so_far(session);
    offer.from = best != nullptr && !best->configuration.empty()
                     ? best->configuration
                     : Configuration(generator.dimensions().size(), 0);
    const auto tried = session.tried(Arm::main);
    for (const Move& move : legal_moves(generator, offer.from)) {
        Configuration at = offer.from;
        at[static_cast<std::size_t>(move.dimension)] = move.value;
        if (std::find(tried.begin(), tried.end(), at) == tried.end()) offer.moves.push_back(move);
    }
    while (offer.moves.size() > limit) {
        const auto victim = static_cast<std::ptrdiff_t>(rng.below(offer.moves.size()));
        offer.moves.erase(offer.moves.begin() + victim);
    }
    return offer;
}

tools::ToolSpec try_spec(const KernelGenerator& generator, const std::vector<Move>& moves) {
    boost::json::array names;
    for (const Move& move : moves) names.emplace_back(move_name(generator, move));
    return {"kernel_try",
            "Apply one move to the best kernel, check and time the result.",
            {{"type", "object"},
             {"properties", {{"move", {{"type", "string"}, {"enum", names}}}}},
             {"required", {"move"}},
             {"additionalProperties", false}},
            tools::Effect::idempotent_write};
}

std::unique_ptr<tools::Tool> make_kernel_moves_tool(KernelSession& session, const Offer& offer) {
    return std::make_unique<MovesTool>(session, offer);
}
std::unique_ptr<tools::Tool> make_kernel_try_move_tool(KernelSession& session, const Offer& offer) {
    return std::make_unique<TryMoveTool>(session, offer);
}
std::unique_ptr<tools::Tool> make_kernel_try_file_tool(KernelSession& session,
                                                       const tools::Workspace& workspace,
                                                       std::string proposer, int max_evaluations) {
    return std::make_unique<TryFileTool>(session, workspace, std::move(proposer), max_evaluations);
}
std::unique_ptr<tools::Tool> make_kernel_submit_tool(const KernelSession& session,
                                                     bool& submitted) {
    return std::make_unique<SubmitTool>(session, submitted);
}

std::string describe_for_model(const Evaluation& evaluation) {
    const Verdict& verdict = evaluation.verdict;
    if (!verdict.timed()) {
        return fmt::format("{}: {}\n", to_string(verdict.status), verdict.message);
    }
    return fmt::format("correct, {:.2f} x the anchor ({:.2f} to {:.2f}), {:.0f} % of the limit\n",
                       verdict.speedup, verdict.speedup_low, verdict.speedup_high,
                       100 * verdict.limit_fraction);
}

}  // namespace skein::harnesses
