#include "model/engine.h"

#include <doctest/doctest.h>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_path.h"

using namespace skein;
using namespace skein::model;

TEST_SUITE("model/engine") {
    TEST_CASE("an engine tells what it is") {
        EngineOptions options;
        options.threads = 2;
        const auto engine = Engine::load(test::model_path(), options);
        CHECK(engine->threads() == 2);
        CHECK(engine->isa() == available_kernels().back()->isa);
        CHECK(engine->numerics_version() == "skein-cpu-1");
        CHECK(engine->path() == test::model_path());
        // 106.2 million weights of 0.625 bytes and the output head of 28.3 million of 1.0625.
        CHECK(engine->weight_bytes() == 96436224);
        // 30 layers, 3 heads, a key and a value of 64 codes and a scale.
        CHECK(engine->kv_bytes_per_token() == 30 * 3 * 2 * (64 * 2 + 4));
        CHECK(engine->new_session().max_context() == 8192);
        CHECK(engine->new_session({.max_context = 100}).max_context() == 100);
        CHECK(engine->new_session().size() == 0);
    }

    TEST_CASE("a session outlives the engine that made it") {
        auto engine = Engine::load(test::fixtures() / "llama-tiny" / "model-q8_0.gguf");
        Session session = engine->new_session();
        engine.reset();
        session.sync(test::some_tokens(20, 512));
        CHECK(session.logits().size() == 512);
    }

    TEST_CASE("wrong options are refused with the range that is allowed") {
        const auto path = test::fixtures() / "llama-tiny" / "model-q8_0.gguf";
        EngineOptions options;
        options.threads = -1;
        CHECK_THROWS_WITH_AS(Engine::load(path, options), doctest::Contains("threads"), Error);
        options = {};
        options.prefill_chunk = 0;
        CHECK_THROWS_WITH_AS(Engine::load(path, options), doctest::Contains("prefill_chunk"),
                             Error);
        const auto engine = Engine::load(path);
        CHECK_THROWS_WITH_AS(engine->new_session({.max_context = 1 << 20}),
                             doctest::Contains("max_context"), Error);
    }

    TEST_CASE("a file that is not there is named") {
        CHECK_THROWS_WITH_AS(Engine::load("/nowhere/model.gguf"), doctest::Contains("/nowhere"),
                             Error);
    }
}
