#include "harnesses/eval/recall.h"

#include <doctest/doctest.h>

#include "harnesses/exit_code.h"
#include "model/error.h"
#include "tests/harnesses/eval/recall_fixture.h"

using namespace skein;
using namespace skein::harnesses;

TEST_SUITE("harnesses/eval/recall") {
    TEST_CASE("recall: every needle is found at 4K and 32K, in the block that holds it") {
        const auto engine = test::recall_engine();
        for (const int tokens : {4096, 32768}) {
            CAPTURE(tokens);
            const RecallReport report = evaluate_recall(*engine, make_recall_corpus(tokens, 64, 1));
            test::check_perfect(report);
            CHECK(report.questions == 64);
            const auto context = static_cast<std::size_t>(tokens - 64 * kQuestionTokens);
            CHECK(report.kv_bytes >= context * engine->kv_bytes_per_token());
            CHECK(report.prefill_seconds > 0);
        }
    }

    TEST_CASE("recall: the safetensors form of the model finds them too") {
        const auto engine = test::recall_engine(model::AttentionMode::model, ".");
        test::check_perfect(evaluate_recall(*engine, make_recall_corpus(4096, 32, 2)));
    }

    TEST_CASE(
        "recall: with the last blocks instead of the selected ones only near needles remain") {
        const auto engine = test::recall_engine(model::AttentionMode::local);
        // 16 blocks of 128 tokens are the whole log here.
        CHECK(evaluate_recall(*engine, make_recall_corpus(1024, 32, 1)).recall() == 1.0);
        // Here 1/16 of it, and needles are spread evenly.
        const RecallReport far = evaluate_recall(*engine, make_recall_corpus(32768, 64, 1));
        CHECK(far.recall() < 0.1);
        REQUIRE(far.block_recall().has_value());
        CHECK(*far.block_recall() < 0.1);
    }

    TEST_CASE("recall: the smallest share of matching layers and heads is what counts") {
        RecallReport report;
        CHECK_FALSE(report.block_recall().has_value());
        report.layers = {{0, false, {0.1, 0.2}}, {1, true, {1.0, 0.75}}, {2, true, {1.0, 1.0}}};
        CHECK(report.block_recall() == 0.75);
        report.questions = 8;
        report.right = 6;
        CHECK(report.recall() == 0.75);
    }

    TEST_CASE("recall: a log longer than the model's positions is refused by the engine") {
        const auto engine = test::recall_engine();
        CHECK_THROWS_AS(evaluate_recall(*engine, make_recall_corpus((1 << 20) + 64, 4, 1)),
                        model::Error);
    }
}
