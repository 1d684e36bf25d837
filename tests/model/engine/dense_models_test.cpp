// Random models of three layers and dense attention against float64 arithmetic, in every file form.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/npy.h"

using namespace skein;
using namespace skein::model;

namespace {

struct Case {
    const char* folder;
    const char* file;
    const char* expected;
    float tolerance;
};

// Float weights: f32 rounding, as the fixture suggests.
constexpr float kFloat = 1e-4F;
// Quantised weights: activations are cut to codes of 1/65534 of a block's largest value. The
// largest logits are near 35 and an activation passes 4 such cuts in each of 3 layers:
// 35 * 12 / 65534 = 6e-3.
constexpr float kQuantised = 6e-3F;

constexpr Case kCases[] = {
    {"llama-tiny", "model-f32.gguf", "logits.npy", kFloat},
    {"llama-tiny", "model-f16.gguf", "f16-logits.npy", kFloat},
    {"llama-tiny", "model-q8_0.gguf", "q8_0-logits.npy", kQuantised},
    {"llama-tiny", "model-q5_0.gguf", "q5_0-logits.npy", kQuantised},
    {"llama-tiny", "model-q5_1.gguf", "q5_1-logits.npy", kQuantised},
    {"llama-tiny", "model-q4_0.gguf", "q4_0-logits.npy", kQuantised},
    {"llama-tiny", "model-q4_1.gguf", "q4_1-logits.npy", kQuantised},
    {"llama-tiny", ".", "logits.npy", kFloat},  // the safetensors folder
    {"qwen3-tiny", "model-f32.gguf", "logits.npy", kFloat},
    {"qwen3-tiny", ".", "logits.npy", kFloat},
    {"m2-tiny", "model-f32.gguf", "logits.npy", kFloat},
    {"m2-tiny", ".", "logits.npy", kFloat},
};

/// The largest difference over the stored positions.
float worst_difference(const Case& one, const EngineOptions& options) {
    const auto folder = test::fixtures() / one.folder;
    const auto runtime = test::open_runtime(folder / one.file, options);
    const auto ids = test::read_int_list(folder / "ids.json");
    const auto positions = test::read_int_list(folder / "positions.json");
    const test::NpyArray logits = test::load_npy(folder / one.expected);
    Session session = make_session(runtime, runtime->config().max_context);
    float worst = 0;
    for (std::size_t p = 0; p < positions.size(); ++p) {
        // The scalar table is slow; that it has the same bits is tested elsewhere.
        if (options.isa == Isa::scalar && positions[p] > 64) break;
        session.sync(std::span(ids).first(static_cast<std::size_t>(positions[p]) + 1));
        const Logits got = session.logits();
        REQUIRE(got.size() == logits.shape[1]);
        for (std::size_t i = 0; i < got.size(); ++i)
            worst = std::max(worst, std::fabs(got[i] - logits.row(p)[i]));
    }
    return worst;
}

}  // namespace

TEST_SUITE("model/engine/dense_models") {
    TEST_CASE("logits of every file form are those of float64 arithmetic, on every table") {
        for (const Case& one : kCases) {
            for (const CpuKernels* table : available_kernels()) {
                CAPTURE(one.folder);
                CAPTURE(one.file);
                CAPTURE(table->name);
                EngineOptions options;
                options.isa = table->isa;
                options.threads = 2;
                options.kv = KvType::f32;
                CHECK(worst_difference(one, options) < one.tolerance);
            }
        }
    }

    TEST_CASE("keys and values as 16-bit codes cost no more than quantised activations do") {
        for (const Case& one : kCases) {
            CAPTURE(one.folder);
            CAPTURE(one.file);
            CHECK(worst_difference(one, {}) < kQuantised);
        }
    }
}
