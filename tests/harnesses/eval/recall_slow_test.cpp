// 131,072 tokens: one to three minutes. A million is `skein eval recall --depth 1m`, by hand or at
// night.

#include <doctest/doctest.h>

#include "tests/harnesses/eval/recall_fixture.h"

using namespace skein;
using namespace skein::harnesses;

TEST_SUITE("harnesses/eval/recall at 128K") {
    TEST_CASE("recall: every needle is found at 128K, in the block that holds it") {
        test::check_perfect(
            evaluate_recall(*test::recall_engine(), make_recall_corpus(131072, 64, 1)));
    }

    TEST_CASE(
        "recall: with the last blocks instead of the selected ones nothing is found at 128K") {
        const auto engine = test::recall_engine(model::AttentionMode::local);
        const RecallReport report = evaluate_recall(*engine, make_recall_corpus(131072, 64, 1));
        CHECK(report.recall() < 0.05);
    }
}
