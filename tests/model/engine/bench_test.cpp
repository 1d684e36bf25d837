#include "model/bench.h"

#include <doctest/doctest.h>

#include "model/cpu/roof.h"
#include "model/error.h"
#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::model;

namespace {

std::shared_ptr<const Engine> recall_engine(const EngineOptions& options = {}) {
    return Engine::load(test::fixtures() / "m3-recall" / "model-bf16.gguf", options);
}

}  // namespace

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
        CHECK(report.decode.weight_bytes == doctest::Approx(double(engine->weight_bytes())));
        CHECK(report.decode.kv_bytes ==
              doctest::Approx(131.0 * double(engine->kv_bytes_per_token())));
        CHECK(report.decode.index_bytes == 0);
        CHECK(report.decode_gb_per_s() > 0);
        CHECK(measure_speed(*engine, options, SpeedPart::decode).prefill_tokens_per_s.n == 0);
        options.depth = 1 << 20;
        CHECK_THROWS_AS(measure_speed(*engine, options), Error);
    }

    TEST_CASE("work at depth: a sparse layer reads the selected blocks and half the index keys") {
        const auto engine = recall_engine();
        const ModelConfig& config = engine->config();
        const double token = static_cast<double>(engine->kv_bytes_per_token());
        const double vector = 64 * 2 + 4;  // 64 codes of 16 bits and their scale
        const StepWork deep = step_work(*engine, 100'000, 1);
        CHECK(deep.kv_bytes == doctest::Approx(3 * 2 * 2 * vector * 16 * 128));
        // High bytes and scales of all keys, low bytes of the selected pages.
        CHECK(deep.index_bytes == doctest::Approx(3 * ((64 + 4) * 100'001 + 64 * 16 * 128)));
        EngineOptions floats;
        floats.index_kv = KvType::bf16;
        CHECK(step_work(*recall_engine(floats), 100'000, 1).index_bytes ==
              doctest::Approx(3 * 64 * 2 * 100'001));
        CHECK(deep.index_ops == doctest::Approx(2.0 * 3 * 2 * 64 * 100'001));
        CHECK(deep.attention_flops == doctest::Approx(4.0 * 3 * 4 * 64 * 16 * 128));
        const StepWork shallow = step_work(*engine, 999, 1);
        CHECK(shallow.kv_bytes + shallow.index_bytes == doctest::Approx(token * 1000));
        CHECK(shallow.projection_ops == deep.projection_ops);
        // Router, 2 of 8 experts and the shared expert of width 64, and the output head.
        const double layer = 128.0 * ((2 * 4 + 2 * 2) * 64 + 3 * 64 + 8 + 3 * 3 * 64);
        CHECK(deep.projection_ops == doctest::Approx(2 * (3 * layer + 128.0 * 960)));
        CHECK(config.n_layers() == 3);

        MachineRoof roof;
        roof.read_gb_per_s = 1;
        CHECK(roof.least_seconds(deep) == doctest::Approx(deep.bytes() / 1e9));
        roof.madd_int16_gop_per_s = 1e-3;
        CHECK(roof.least_seconds(deep) ==
              doctest::Approx((deep.projection_ops + deep.index_ops) / 1e6));
    }

    TEST_CASE("a synthetic fill costs no prefill and measures every part") {
        EngineOptions local;
        local.attention = AttentionMode::local;
        const auto engine = recall_engine();
        const auto control = recall_engine(local);
        SpeedOptions options;
        options.depth = 20'000;
        options.synthetic = true;
        options.prompt_tokens = 16;
        options.decode_tokens = 4;
        options.repetitions = 2;
        const SelectReport select = measure_select(*engine, *control, options);
        CHECK(select.selecting.decode_tokens_per_s.n == 2);
        CHECK(select.local.prefill_tokens_per_s.n == 2);
        CHECK(select.decode_share() < 1);
        CHECK(select.local.decode.index_bytes == 0);
        CHECK(select.local.decode.kv_bytes == select.selecting.decode.kv_bytes);

        const ForkReport fork = measure_fork(*engine, options);
        CHECK(fork.microseconds.n == 2);
        CHECK(fork.full_blocks == 20'000 / 128);
        CHECK(fork.copied_full_blocks == 0);

        const test::TemporaryDirectory folder;
        const ResumeReport resume = measure_resume(*engine, options, folder / "session");
        CHECK(resume.evaluated == 0);
        CHECK(resume.same_logits);
        CHECK(resume.file_bytes > 20'000 * engine->kv_bytes_per_token());
        CHECK(std::filesystem::is_empty(folder.path()));
    }

    TEST_CASE("the loops that measure the roof do the work that they claim") {
        const std::vector<std::uint64_t> words(4 * 100, 3);
        CHECK(read_all(words) == 0);  // four equal sums
        const bool vectors = available_kernels().back()->isa != Isa::scalar;
        CHECK((spin_fma() > 0) == vectors);
        CHECK((spin_madd() > 0) == vectors);
    }
}
