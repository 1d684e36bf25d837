#include "harnesses/kernel_opt/move_space.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "harnesses/kernel_opt/task.h"
#include "harnesses/kernel_opt/tasks/choice_generator.h"
#include "tests/harnesses/kernel_opt/points.h"

using namespace skein::harnesses;
using skein::testing::every_legal_point;

TEST_SUITE("harnesses/kernel_opt/move_space") {
    TEST_CASE("every task has a generator and every generator a task") {
        const std::vector<KernelTask> tasks = load_tasks(tasks_root());
        CHECK(tasks.size() == all_generators().size());
        for (const KernelTask& task : tasks) {
            CAPTURE(task.id);
            REQUIRE(find_generator(task.id) != nullptr);
            CHECK(find_generator(task.id)->task_id() == task.id);
        }
        CHECK(find_generator("no such task") == nullptr);
    }

    TEST_CASE("spaces are neither trivial nor endless and start at the anchor") {
        for (const KernelGenerator* generator : all_generators()) {
            CAPTURE(generator->task_id());
            const std::size_t points = every_legal_point(*generator).size();
            CHECK(points >= 100);
            CHECK(points <= 1500);
            const Configuration anchor(generator->dimensions().size(), 0);
            CHECK(generator->legal(anchor));
            CHECK(generator->flags(anchor).empty());
            CHECK(describe(*generator, anchor) == "as the anchor");
        }
    }

    TEST_CASE("dimensions have distinct names, distinct values and a help line") {
        for (const KernelGenerator* generator : all_generators()) {
            CAPTURE(generator->task_id());
            std::set<std::string> names;
            for (const Dimension& dimension : generator->dimensions()) {
                CAPTURE(dimension.name);
                CHECK(names.insert(dimension.name).second);
                CHECK_FALSE(dimension.help.empty());
                CHECK(dimension.help.find('\n') == std::string::npos);
                const std::set<std::string> values(dimension.values.begin(),
                                                   dimension.values.end());
                CHECK(values.size() == dimension.values.size());
                CHECK(values.size() >= 2);
            }
        }
    }

    TEST_CASE("moves are single legal changes in order, and each can be undone") {
        for (const KernelGenerator* generator : all_generators()) {
            CAPTURE(generator->task_id());
            for (const Configuration& from : every_legal_point(*generator)) {
                const std::vector<Move> moves = legal_moves(*generator, from);
                const bool ordered =
                    std::is_sorted(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
                        return std::pair(a.dimension, a.value) < std::pair(b.dimension, b.value);
                    });
                bool legal = true, undone = true;
                for (const Move& move : moves) {
                    Configuration to = from;
                    to[static_cast<std::size_t>(move.dimension)] = move.value;
                    legal = legal && to != from && generator->legal(to);
                    const std::vector<Move> back = legal_moves(*generator, to);
                    const int old = from[static_cast<std::size_t>(move.dimension)];
                    undone = undone && std::any_of(back.begin(), back.end(), [&](const Move& b) {
                                 return b.dimension == move.dimension && b.value == old;
                             });
                }
                if (!moves.empty() && ordered && legal && undone) continue;
                FAIL_CHECK(describe(*generator, from));
            }
        }
    }

    TEST_CASE("every legal point can be reached from the anchor by single moves") {
        for (const KernelGenerator* generator : all_generators()) {
            CAPTURE(generator->task_id());
            std::set<Configuration> reached{Configuration(generator->dimensions().size(), 0)};
            std::vector<Configuration> frontier(reached.begin(), reached.end());
            while (!frontier.empty()) {
                const Configuration from = frontier.back();
                frontier.pop_back();
                for (const Move& move : legal_moves(*generator, from)) {
                    Configuration to = from;
                    to[static_cast<std::size_t>(move.dimension)] = move.value;
                    if (reached.insert(to).second) frontier.push_back(to);
                }
            }
            CHECK(reached.size() == every_legal_point(*generator).size());
        }
    }

    TEST_CASE("a configuration of the wrong size or out of range is not legal") {
        const KernelGenerator& generator = *find_generator("sgemv");
        const std::size_t size = generator.dimensions().size();
        CHECK_FALSE(generator.legal({}));
        CHECK_FALSE(generator.legal(Configuration(size + 1, 0)));
        CHECK_FALSE(generator.legal(Configuration(size, 99)));
        CHECK_FALSE(generator.legal(Configuration(size, -1)));
        CHECK_THROWS_AS(generator.source(Configuration(size, 99)), std::invalid_argument);
        CHECK_THROWS_AS(legal_moves(generator, {}), std::invalid_argument);
    }

    TEST_CASE("descriptions name what differs from the anchor") {
        const KernelGenerator& generator = *find_generator("sgemv");
        CHECK(describe(generator, Configuration{2, 2, 0, 0, 0, 1}) ==
              "rows=4 vector_width=8 flags=-Ofast");
        CHECK(describe(generator, Move{0, 2}) == "rows=4 (rows computed together, sharing x)");
    }

    TEST_CASE("templates refuse names without a value") {
        CHECK(fill("a @X@ b@Y@", {{"X", "1"}, {"Y", ""}}) == "a 1 b");
        CHECK_THROWS_AS(fill("@Z@", {{"X", "1"}}), std::logic_error);
        CHECK_THROWS_AS(fill("@X", {{"X", "1"}}), std::logic_error);
    }
}
