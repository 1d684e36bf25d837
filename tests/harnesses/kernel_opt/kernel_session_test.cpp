#include "harnesses/kernel_opt/kernel_session.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "harnesses/kernel_opt/evaluation.h"
#include "tests/harnesses/kernel_opt/fake_kernel.h"

using namespace skein::harnesses;
using namespace skein::test;

TEST_SUITE("harnesses/kernel_opt/kernel_session") {
    TEST_CASE("evaluation: JSON and back is the same") {
        Evaluation e;
        e.task = "fake";
        e.arm = Arm::random;
        e.index = 3;
        e.proposer = "random";
        e.configuration = {1, 2, 0, 3};
        e.flags = {"-f3"};
        e.source_hash = "abc";
        e.stage = Stage::final;
        e.verdict = fake_verdict({"cfg 1 2 0", {"-f3"}});
        const auto json = boost::json::parse(boost::json::serialize(to_json(e)));
        const Evaluation back = evaluation_from_json(json.as_object());
        CHECK(back.configuration == e.configuration);
        CHECK(back.arm == e.arm);
        CHECK(back.stage == e.stage);
        CHECK(back.verdict.speedup == doctest::Approx(e.verdict.speedup));
        CHECK(boost::json::serialize(to_json(back)) == boost::json::serialize(json));
    }

    TEST_CASE("session: a verdict is stored with its source before anything can depend on it") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        run_now(process.session.evaluate({1, 1, 1, 0}, "search", Arm::main, Stage::time));
        const skein::agent::store::Reader reader(directory.path());
        REQUIRE(reader.events("evaluation").size() == 1);
        CHECK(reader.rewards().size() == 1);
        const Evaluation& e = process.session.evaluations().at(0);
        CHECK(reader.blob(e.source_hash) == "cfg 1 1 1");
    }

    TEST_CASE(
        "session: a second process finds the verdicts of the first and grades nothing twice") {
        const TemporaryDirectory directory;
        {
            FakeProcess first(directory.path());
            run_now(first.session.evaluate({1, 1, 1, 0}, "search", Arm::main, Stage::time));
            CHECK(first.graded == 1);
        }
        FakeProcess second(directory.path());
        CHECK(second.journal.has_recorded("fake"));
        CHECK_FALSE(second.journal.has_recorded("fak"));
        run_now(second.session.evaluate({1, 1, 1, 0}, "search", Arm::main, Stage::time));
        CHECK(second.graded == 0);
        CHECK_FALSE(second.journal.has_recorded("fake"));
        run_now(second.session.evaluate({2, 1, 1, 0}, "search", Arm::main, Stage::time));
        CHECK(second.graded == 1);
    }

    TEST_CASE("session: the same program in the other arm is not graded again, a finalist is") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        run_now(process.session.evaluate({1, 0, 0, 0}, "search", Arm::main, Stage::time));
        run_now(process.session.evaluate({1, 0, 0, 0}, "random", Arm::random, Stage::time));
        CHECK(process.graded == 1);
        run_now(process.session.evaluate({1, 0, 0, 0}, "search", Arm::final, Stage::final));
        CHECK(process.graded == 2);
        CHECK(process.session.count(Arm::main) == 1);
        CHECK(process.session.count(Arm::random) == 1);
    }

    TEST_CASE("session: the best is the fastest correct one of its arm and proposer") {
        const TemporaryDirectory directory;
        FakeProcess process(directory.path());
        auto& session = process.session;
        CHECK(session.best(Arm::main) == nullptr);
        run_now(session.evaluate({0, 3, 3, 0}, "search", Arm::main, Stage::time));  // wrong
        CHECK(session.best(Arm::main) == nullptr);
        run_now(session.evaluate({1, 0, 0, 0}, "model", Arm::main, Stage::time));
        run_now(session.evaluate({2, 2, 2, 0}, "search", Arm::main, Stage::time));
        CHECK(session.best(Arm::main)->configuration == Configuration{2, 2, 2, 0});
        CHECK(session.best(Arm::main, "model")->configuration == Configuration{1, 0, 0, 0});
        CHECK(session.observations(Arm::main).at(0).log_speedup == kFailedLogSpeedup);
    }
}
