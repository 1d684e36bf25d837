#include "model/bench.h"

#include <doctest/doctest.h>

#include "model/cpu/roof.h"
#include "model/error.h"
#include "tests/model/engine/engine_fixtures.h"

using namespace skein;
using namespace skein::model;

TEST_SUITE("model/bench") {
    TEST_CASE("a speed report holds what was asked and its figures agree with each other") {
        const auto engine = Engine::load(test::fixtures() / "llama-tiny" / "model-q8_0.gguf");
        SpeedOptions options;
        options.prompt_tokens = 40;
        options.decode_tokens = 5;
        options.depth = 130;
        options.repetitions = 3;
        const SpeedReport report = measure_speed(*engine, options);
        CHECK(report.threads == engine->threads());
        for (const Spread& spread : {report.prefill_tokens_per_s, report.decode_tokens_per_s}) {
            CHECK(spread.n == 3);
            CHECK(spread.min > 0);
            CHECK(spread.min <= spread.median);
            CHECK(spread.median <= spread.max);
        }
        CHECK(report.weight_bytes_per_token == engine->weight_bytes());
        CHECK(report.kv_bytes_per_token_at_depth == 130 * engine->kv_bytes_per_token());
        CHECK(report.decode_gb_per_s > 0);
        options.depth = 1 << 20;
        CHECK_THROWS_AS(measure_speed(*engine, options), Error);
    }

    TEST_CASE("the loops that measure the roof do the work that they claim") {
        const std::vector<std::uint64_t> words(4 * 100, 3);
        CHECK(read_all(words) == 0);  // four equal sums
        const bool vectors = available_kernels().back()->isa != Isa::scalar;
        CHECK((spin_fma() > 0) == vectors);
        CHECK((spin_madd() > 0) == vectors);
    }
}
