#include "agent/record.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "agent/memory_recorder.h"
#include "agent/message.h"

using namespace skein::agent;

TEST_SUITE("agent/record") {
    TEST_CASE("record: uids are UUID version 7 and sort by their making") {
        std::set<Uid> seen;
        Uid last;
        for (int i = 0; i < 20000; ++i) {
            const Uid uid = Uid::make();
            CHECK((uid.bytes[6] >> 4) == 7);
            CHECK((uid.bytes[8] >> 6) == 2);
            CHECK(last < uid);
            last = uid;
            seen.insert(uid);
        }
        CHECK(seen.size() == 20000);
    }

    TEST_CASE("record: a uid survives its text, with or without dashes, in either case") {
        const Uid uid = Uid::make();
        CHECK(uid.hex().size() == 32);
        CHECK(Uid::parse(uid.hex()) == uid);
        CHECK(Uid::parse("018F0000-0000-7000-8000-00000000000A")->hex() ==
              "018f000000007000800000000000000a");
        CHECK_FALSE(Uid::parse(""));
        CHECK_FALSE(Uid::parse(uid.hex() + "0"));
        std::string wrong = uid.hex();
        wrong[0] = 'g';
        CHECK_FALSE(Uid::parse(wrong));
    }

    TEST_CASE("record: roles and finish reasons have names") {
        CHECK(to_string(Role::assistant) == "assistant");
        CHECK(to_string(FinishReason::grammar_complete) == "grammar_complete");
        CHECK(to_string(FinishReason::cancelled) == "cancelled");
    }
}

TEST_SUITE("agent/memory_recorder") {
    TEST_CASE("memory_recorder: puts the tokens of one trajectory together in order") {
        MemoryRecorder recorder;
        const Uid mine = Uid::make(), other = Uid::make();
        StepRecord step;
        step.trajectory = mine;
        step.delta = {{Origin::glue, {1}}, {Origin::user, {2, 3}}};
        step.reply.tokens = {4};
        step.closing = {{Origin::glue, {5}}};
        recorder.record_step(step);
        StepRecord foreign = step;
        foreign.trajectory = other;
        recorder.record_step(foreign);
        const std::vector<std::pair<Origin, Tokens>> tail{{Origin::tool, {6}}};
        recorder.finish_trajectory(mine, ExitStatus::finished, "done", tail);
        CHECK(recorded_tokens(recorder, mine) == Tokens{1, 2, 3, 4, 5, 6});
        CHECK(recorded_tokens(recorder, other) == Tokens{1, 2, 3, 4, 5});
        CHECK(recorder.finishes.at(0).final_message == "done");
    }
}
