// The real default model against expected values computed in float64.

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cmath>

#include "model/engine.h"
#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_path.h"

using namespace skein;
using namespace skein::model;

namespace {

// Measured 0.004 with logits up to 38; int8 activations would be off by 0.1 to 0.7.
constexpr double kTolerance = 1e-2;

boost::json::value generation() {
    return boost::json::parse(test::read_text(test::fixtures() / "smollm2" / "generation.json"));
}

Tokens tokens_of(const boost::json::value& list) {
    Tokens tokens;
    for (const auto& id : list.as_array()) tokens.push_back(id.to_number<Token>());
    return tokens;
}

}  // namespace

TEST_SUITE("model/engine/smollm2") {
    TEST_CASE("top-5 logits, 32 greedy tokens and their logits for each of the five prompts") {
        const auto engine = Engine::load(test::model_path());
        CHECK(engine->config().n_layers() == 30);
        CHECK(engine->config().dim == 576);
        CHECK(engine->tokenizer().vocab_size() == 49152);
        int steps = 0;
        const boost::json::value file = generation();
        for (const auto& prompt : file.at("prompts").as_array()) {
            const std::string name(prompt.at("name").as_string());
            CAPTURE(name);
            Session session = engine->new_session();
            const Tokens ids = tokens_of(prompt.at("ids"));
            const SyncReport report = session.sync(ids);
            CHECK(report.evaluated == static_cast<int>(ids.size()));
            for (const auto& top : prompt.at("top5").as_array()) {
                const auto id = top.at("id").to_number<std::size_t>();
                const auto got = static_cast<double>(session.logits()[id]);
                CHECK(std::fabs(got - top.at("logit").to_number<double>()) < kTolerance);
            }
            const auto& step_logit = prompt.at("step_logit").as_array();
            std::size_t step = 0;
            const Tokens greedy = tokens_of(prompt.at("greedy"));
            for (const Token expected : greedy) {
                const Token got = test::best(session.logits());
                CHECK(got == expected);
                const auto logit =
                    static_cast<double>(session.logits()[static_cast<std::size_t>(got)]);
                CHECK(std::fabs(logit - step_logit[step].to_number<double>()) < kTolerance);
                session.decode(expected);
                ++step;
            }
            steps += static_cast<int>(step);
        }
        CHECK(steps == 160);
    }
}
