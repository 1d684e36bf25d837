#pragma once
// Records to write, for the tests of the store.

#include "agent/store/reader.h"
#include "agent/store/writer.h"
#include "tests/support/temporary_directory.h"

namespace skein::test {

inline agent::store::RunRecord run_record() {
    return {agent::Uid::make(), "agent", "skein run x", "version: 1\n", "0.1.0"};
}

inline agent::TrajectoryRecord trajectory_record() {
    agent::TrajectoryRecord record;
    record.uid = agent::Uid::make();
    record.role = "root";
    record.task = "demo";
    record.model = "scripted";
    record.chat_format = "chatml";
    record.tools_json = "[]";
    record.config_json = "{}";
    return record;
}

/// A step of a few tokens; `n` makes it recognisable.
inline agent::StepRecord step_record(const agent::Uid& trajectory, int n) {
    using agent::Origin;
    agent::StepRecord step;
    step.uid = agent::Uid::make();
    step.trajectory = trajectory;
    step.sequence = n;
    step.said = {"say " + std::to_string(n)};
    step.delta = {{Origin::glue, {1, 2}}, {Origin::user, {100 + n, 200, 300}}};
    step.reply.tokens = {7, 8, 9};
    step.reply.logprobs = {-0.5F, -1.25F, -3.0e-7F};
    step.reply.origins = {Origin::sampled, Origin::forced, Origin::sampled};
    step.reply.rng_position = 5;
    step.closing = {{Origin::glue, {3}}};
    step.sampling.temperature = 0.7F;
    step.sampling.seed = 0xFFFFFFFFFFFFFFFFULL;
    step.text = "reply " + std::to_string(n);
    return step;
}

}  // namespace skein::test
