#pragma once
// The trained recall model, and what an exact engine must show with it.

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "harnesses/eval/recall.h"

namespace skein::test {

inline std::shared_ptr<const model::Engine> recall_engine(
    model::AttentionMode attention = model::AttentionMode::model,
    const std::string& file = "model-bf16.gguf") {
    model::EngineOptions options;
    options.attention = attention;
    return model::Engine::load(std::string(SKEIN_TEST_DATA) + "/fixtures/m3-recall/" + file,
                               options);
}

/// Every answer right, and the block of the answer selected by both KV heads of both matching
/// layers at every answering token.
inline void check_perfect(const harnesses::RecallReport& report) {
    CHECK(report.recall() == 1.0);
    REQUIRE(report.layers.size() == 3);
    CHECK_FALSE(report.layers[0].matching);
    for (const std::size_t layer : {1U, 2U}) {
        CHECK(report.layers[layer].matching);
        CHECK(report.layers[layer].found == std::vector<double>{1.0, 1.0});
    }
    CHECK(report.block_recall() == 1.0);
}

}  // namespace skein::test
