#include "harnesses/kernel_opt/optimise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "agent/llm/scripted_model.h"
#include "agent/memory_recorder.h"
#include "agent/store/replay.h"
#include "harnesses/kernel_opt/kernel_tools.h"
#include "harnesses/kernel_opt/move_proposer.h"
#include "harnesses/kernel_opt/report.h"
#include "tests/harnesses/kernel_opt/fake_kernel.h"

using namespace skein::harnesses;
using namespace skein::test;
namespace agent = skein::agent;
namespace store = skein::agent::store;

namespace {

OptimiseOptions options_for(Proposer proposer) {
    OptimiseOptions options;
    options.proposer = proposer;
    options.evaluations = 12;
    options.limits.reply_tokens = 200;
    return options;
}

/// Chooses the first legal move of the last prompt.
agent::ScriptedReply first_move(const skein::model::Tokenizer& tokenizer,
                                std::span<const agent::Token> prompt) {
    const std::string text = tokenizer.decode(prompt);
    const auto at = text.rfind("Legal moves: ") + 13;
    const std::string move = text.substr(at, text.find_first_of(" <\n", at) - at);
    return {.text = "<tool_call>\n{\"name\": \"kernel_try\", \"arguments\": {\"move\":\"" + move +
                    "\"}}\n</tool_call>"};
}

/// A model that always takes the first move, with the replies of a stored run first when resumed.
struct Chooser {
    std::shared_ptr<const skein::model::Tokenizer> tokenizer = agent::make_byte_tokenizer();
    agent::ScriptedModel model{tokenizer, [this](std::span<const agent::Token> prompt) {
                                   return first_move(*tokenizer, prompt);
                               }};
};

TaskResult optimise_once(FakeProcess& process, OptimiseOptions options, ModelSide side = {}) {
    return run_now(optimise(process.session, std::move(options), side, [] { return false; }));
}

/// As `optimise_once`, in a process that dies at its `die_at`-th live evaluation.
std::optional<TaskResult> in_process(const std::filesystem::path& directory, Proposer proposer,
                                     int die_at) {
    FakeProcess process(directory, die_at);
    Chooser chooser;
    ModelSide side{&chooser.model, process.writer.get(), {}, nullptr};
    const store::Reader reader(directory);
    std::unique_ptr<store::ReplayState> state;
    std::unique_ptr<store::ReplayModel> model;
    std::unique_ptr<store::ReplayRecorder> recorder;
    for (const auto& trajectory : reader.trajectories()) {
        state = std::make_unique<store::ReplayState>(
            store::ReplayState::for_resume(reader.steps(trajectory.record.uid)));
        model = std::make_unique<store::ReplayModel>(*state, *chooser.tokenizer, trajectory.record,
                                                     &chooser.model);
        recorder =
            std::make_unique<store::ReplayRecorder>(*state, trajectory, process.writer.get());
        side.model = model.get();
        side.recorder = recorder.get();
    }
    try {
        TaskResult result = optimise_once(process, options_for(proposer), side);
        if (state) {
            CAPTURE(state->difference().value_or(""));
            CHECK_FALSE(state->difference().has_value());
        }
        return result;
    } catch (const std::runtime_error& error) {
        CHECK(std::string(error.what()).find("killed here") != std::string::npos);
        return std::nullopt;
    }
}

}  // namespace

TEST_SUITE("harnesses/kernel_opt/optimise") {
    TEST_CASE("optimise: both arms get the same budget and the winner is timed again") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        const TaskResult result = optimise_once(process, options_for(Proposer::search));
        CHECK(result.evaluations == 12);
        CHECK(result.control_evaluations == 12);
        CHECK(result.by_search == 12);
        CHECK(result.by_model == 0);
        CHECK(result.improved);
        CHECK(result.random_control.has_value());
        CHECK(result.winner.speedup >= process.session.best(Arm::main)->verdict.speedup * 0.999);
        CHECK(process.session.count(Arm::final) >= 4);  // anchor, finalists, control
        CHECK(result.flags_only == doctest::Approx(1.1));
    }

    TEST_CASE("optimise: without a correct candidate the anchor stays and nothing is claimed") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        process.task.anchor_source = "anchor";
        OptimiseOptions options = options_for(Proposer::search);
        options.evaluations = 0;
        const TaskResult result = optimise_once(process, options);
        CHECK_FALSE(result.improved);
        CHECK(result.winner_source == "anchor");
        CHECK(result.winner.speedup == doctest::Approx(1.0));
    }

    TEST_CASE("optimise: the model proposes its share and no more, and is credited for it") {
        const TemporaryDirectory directory;
        const auto result = in_process(directory.path(), Proposer::moves, -1);
        REQUIRE(result.has_value());
        CHECK(result->by_model == 3);  // a quarter of 12
        CHECK(result->by_search == 9);
        CHECK(result->usage.turns == 3);
        CHECK(result->usage.sampled_tokens + result->usage.prompt_tokens > 0);
        const store::Reader reader(directory.path());
        REQUIRE(reader.trajectories().size() == 1);
        CHECK(reader.steps(reader.trajectories()[0].record.uid).size() == 3);
    }

    TEST_CASE("optimise: a run killed at any evaluation and resumed ends as one never killed") {
        for (const Proposer proposer : {Proposer::search, Proposer::moves}) {
            const TemporaryDirectory whole;
            const auto expected = in_process(whole.path(), proposer, -1);
            REQUIRE(expected.has_value());
            const std::size_t n = store::Reader(whole.path()).events("evaluation").size();
            for (int die_at = 0; die_at < static_cast<int>(n); die_at += 3) {
                CAPTURE(to_string(proposer));
                CAPTURE(die_at);
                const TemporaryDirectory directory;
                CHECK_FALSE(in_process(directory.path(), proposer, die_at).has_value());
                const auto before = store::Reader(directory.path()).events("evaluation").size();
                CHECK(before >= static_cast<std::size_t>(die_at));
                const auto resumed = in_process(directory.path(), proposer, -1);
                REQUIRE(resumed.has_value());
                CHECK(resumed->winner_source == expected->winner_source);
                CHECK(resumed->winner.speedup == expected->winner.speedup);
                CHECK(resumed->by_model == expected->by_model);
                const store::Reader reader(directory.path());
                CHECK(reader.events("evaluation").size() == n);  // nothing lost, nothing twice
                CHECK(reader.trajectories().size() == (proposer == Proposer::moves ? 1U : 0U));
                CHECK(reader.verify().empty());
            }
        }
    }

    TEST_CASE("optimise: time ends the search between rounds with equal arms") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        int asked = 0;
        const TaskResult result = run_now(optimise(process.session, options_for(Proposer::search),
                                                   {}, [&] { return ++asked > 1; }));
        CHECK(result.stopped_by_time);
        CHECK(result.evaluations == 8);
        CHECK(result.control_evaluations == 8);
        // The end is short too: the anchor, one finalist and the control's best, each once.
        CHECK(std::ranges::count(result.history, Arm::final, &Evaluation::arm) == 3);
    }

    TEST_CASE("tools: a move that is not on offer is refused and evaluates nothing") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        SearchRng rng(1);
        const Offer offer = offer_moves(process.session, 100, rng);
        CHECK(offer.moves.size() == 12);
        const auto tool = make_kernel_try_move_tool(process.session, offer);
        const auto refused = run_now(tool->call({{"move", "tile=9"}}));
        CHECK(refused.status == skein::tools::ToolStatus::failed);
        CHECK(process.session.count(Arm::main) == 0);
        const auto accepted = run_now(tool->call({{"move", "tile=2"}}));
        CHECK(accepted.status == skein::tools::ToolStatus::ok);
        CHECK(process.session.evaluations().at(0).proposer == "model");
        const auto spec = try_spec(process.generator, offer.moves);
        CHECK(spec.parameters.at("properties").at("move").at("enum").as_array().size() == 12);
    }

    TEST_CASE("tools: offers hold at most what is asked for and nothing tried") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        run_now(process.session.evaluate({1, 0, 0, 0}, "search", Arm::main, Stage::time));
        SearchRng rng(1);
        const Offer offer = offer_moves(process.session, 5, rng);
        CHECK(offer.from == Configuration{1, 0, 0, 0});
        CHECK(offer.moves.size() == 5);
    }
}

TEST_SUITE("harnesses/kernel_opt/report") {
    TEST_CASE("report: curves, table and page show both arms and escape what they quote") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        KernelRunResult run;
        run.tasks.push_back(optimise_once(process, options_for(Proposer::search)));
        run.tasks[0].winner_source = "if (a < b && c) {}";
        run.geomean_speedup = 2.5;
        const auto curve = best_so_far(run.tasks[0], Arm::random, "");
        REQUIRE(!curve.empty());
        CHECK(curve.back().evaluation == 12);
        for (std::size_t i = 1; i < curve.size(); ++i) CHECK(curve[i].best >= curve[i - 1].best);
        const std::string svg = curves_svg(run.tasks[0]);
        CHECK(svg.starts_with("<svg"));
        CHECK(svg.find(">search</text>") != std::string::npos);
        CHECK(svg.find(">random</text>") != std::string::npos);
        const std::string page = report_html(run, {"a <b> run"});
        CHECK(page.find("a &lt;b&gt; run") != std::string::npos);
        CHECK(page.find("if (a &lt; b &amp;&amp; c) {}") != std::string::npos);
        CHECK(table_text(run).find("geometric mean") != std::string::npos);
        const auto json = to_json(run);
        CHECK(json.at("tasks").at(0).at("proposed").at("search").as_int64() == 12);
    }
}
