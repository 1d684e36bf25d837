// Sparse attention and experts against float64 arithmetic: logits and every selected block of every
// position, in every file form, on every table.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/npy.h"

using namespace skein;
using namespace skein::model;

namespace {

struct Case {
    const char* folder;
    const char* file;  ///< "." is the safetensors folder
    const char* logits;
    bool selected;  ///< whether the selections of all positions are stored
    float tolerance;
};

// Float weights: f32 rounding, as the fixture suggests.
constexpr float kFloat = 2e-4F;
// Q8_0 weights with 16-bit activations; an expert that flips would cost 1 or more.
constexpr float kQuantised = 6e-3F;

constexpr Case kCases[] = {
    {"m3-tiny", "model-f32.gguf", "logits.npy", true, kFloat},
    {"m3-tiny", ".", "logits.npy", true, kFloat},
    {"m3-tiny", "hf-saved", "logits.npy", true, kFloat},
    {"m3-tiny", "model-q8_0.gguf", "q8_0-logits.npy", false, kQuantised},
    {"m3-mixed", ".", "logits.npy", true, kFloat},
    {"m3-long", "model-bf16.gguf", "logits.npy", true, kFloat},
    {"m3-long", ".", "logits.npy", true, kFloat},
};

struct Outcome {
    float worst = 0;       ///< largest logit difference at the stored positions
    int wrong_lists = 0;   ///< selections that differ from the expected
    float widest_gap = 0;  ///< of the wrong lists: last chosen score minus next, exactly
    int lists = 0;
};

void compare_selections(const ChoiceLog& log, const std::filesystem::path& folder,
                        const MsaConfig& msa, std::size_t layers, Outcome& outcome) {
    const test::NpyArray expected = test::load_npy(folder / "selected_all.npy");
    const test::NpyArray gaps = test::load_npy(folder / "selected_gap.npy");
    const std::size_t groups = expected.shape[1];
    const std::size_t tokens = expected.shape[2];
    const std::size_t top_k = expected.shape[3];
    REQUIRE(static_cast<int>(top_k) == msa.top_k);
    for (const Choices& choices : log.read()) {
        std::size_t sparse = 0;
        for (const Choices::Layer& layer : choices.layers) {
            if (layer.blocks.empty()) continue;
            for (std::size_t g = 0; g < groups && sparse < layers; ++g) {
                const std::size_t row =
                    (sparse * groups + g) * tokens + static_cast<std::size_t>(choices.position);
                std::vector<std::int32_t> wanted;
                for (std::size_t i = 0; i < top_k; ++i)
                    if (expected.row(row)[i] >= 0)
                        wanted.push_back(static_cast<std::int32_t>(expected.row(row)[i]));
                ++outcome.lists;
                if (layer.blocks.at(g) == wanted) continue;
                ++outcome.wrong_lists;
                outcome.widest_gap = std::max(outcome.widest_gap, gaps.values[row]);
            }
            ++sparse;
        }
        REQUIRE(sparse == expected.shape[0]);
    }
}

/// `change` may spoil the config, to see that the fixture notices; of the sparse layers the first
/// `layers` are compared.
Outcome run(const Case& one, const EngineOptions& options, int most_tokens,
            const std::function<void(ModelConfig&)>& change = {}, std::size_t layers = 99) {
    const auto folder = test::fixtures() / one.folder;
    const auto file = open_model_file(folder / one.file);
    ModelConfig config = file->config();
    const Weights weights = bind_weights(*file, config);
    if (change) change(config);
    const auto runtime = std::make_shared<Runtime>(config, weights, options);
    const auto ids = test::read_int_list(folder / "ids.json");
    const auto positions = test::read_int_list(folder / "positions.json");
    const test::NpyArray logits = test::load_npy(folder / one.logits);
    Session session = make_session(runtime, config.max_context, ChoiceRecording::all);
    Outcome outcome;
    for (std::size_t p = 0; p < positions.size() && positions[p] < most_tokens; ++p) {
        session.sync(std::span(ids).first(static_cast<std::size_t>(positions[p]) + 1));
        const Logits got = session.logits();
        REQUIRE(got.size() == logits.shape[1]);
        for (std::size_t i = 0; i < got.size(); ++i)
            outcome.worst = std::max(outcome.worst, std::fabs(got[i] - logits.row(p)[i]));
    }
    if (one.selected) compare_selections(*session.choices(), folder, config.msa, layers, outcome);
    return outcome;
}

EngineOptions exact_options(Isa isa) {
    EngineOptions options;
    options.isa = isa;
    options.threads = 2;
    options.kv = KvType::f32;
    options.index_kv = KvType::f32;
    return options;
}

}  // namespace

TEST_SUITE("model/engine/m3") {
    TEST_CASE("MiniMax-M3: logits and all selected blocks are those of float64 arithmetic") {
        for (const Case& one : kCases) {
            for (const CpuKernels* table : available_kernels()) {
                CAPTURE(one.folder);
                CAPTURE(one.file);
                CAPTURE(table->name);
                // The scalar table is slow; that it has the same bits is tested elsewhere.
                const int tokens = table->isa == Isa::scalar ? 129 : 1 << 20;
                const Outcome outcome = run(one, exact_options(table->isa), tokens);
                CHECK(outcome.worst < one.tolerance);
                CHECK(outcome.wrong_lists == 0);
                CHECK((outcome.lists > 0) == one.selected);
            }
        }
    }

    TEST_CASE("MiniMax-M3: 16-bit keys, values and index keys select the same blocks but at ties") {
        EngineOptions options;
        options.index_kv = KvType::int16;
        for (const Case& one : kCases) {
            CAPTURE(one.folder);
            CAPTURE(one.file);
            const Outcome outcome = run(one, options, 1 << 20);
            CHECK(outcome.worst < kQuantised);
            CHECK(outcome.wrong_lists <= 4);  // of 28000 in m3-long
            CHECK(outcome.widest_gap < 1e-3F);
        }
    }

    TEST_CASE("MiniMax-M3: default and bf16 index keys only swap blocks of nearly equal scores") {
        // A swapped block changes what later layers see, so only the first sparse layer is judged.
        for (const KvType index : {EngineOptions{}.index_kv, KvType::bf16}) {
            const bool coarse = index == KvType::bf16;
            for (const Case& one : kCases) {
                if (!one.selected) continue;
                CAPTURE(one.folder);
                CAPTURE(one.file);
                CAPTURE(kv_type_name(index));
                EngineOptions options;
                options.index_kv = index;
                const Outcome outcome = run(one, options, 1 << 20, {}, 1);
                CHECK(outcome.lists >= 400);
                CHECK(outcome.wrong_lists <= outcome.lists / (coarse ? 50 : 300));
                CHECK(outcome.widest_gap < (coarse ? 0.1F : 0.01F));
            }
        }
    }

    TEST_CASE("MiniMax-M3: a forgotten +1, scale or selection never passes the fixture") {
        const Case& one = kCases[1];
        const auto options = exact_options(Isa::automatic);
        const Outcome no_one = run(one, options, 1 << 20,
                                   [](ModelConfig& config) { config.zero_centred_norms = false; });
        CHECK(no_one.worst > 0.1F);
        CHECK(no_one.wrong_lists > 0);
        const Outcome unscaled =
            run(one, options, 1 << 20, [](ModelConfig& config) { config.moe.scale = 1.0F; });
        CHECK(unscaled.worst > 0.1F);
        const Outcome local = run(one, options, 1 << 20, [](ModelConfig& config) {
            config.msa.local_blocks = config.msa.top_k;
        });
        CHECK(local.worst > 0.1F);
        CHECK(local.wrong_lists > 0);
    }

    TEST_CASE("MiniMax-M3: greedy continuation over three block edges") {
        const auto folder = test::fixtures() / "m3-tiny";
        const auto runtime = test::open_runtime(folder / "model-f32.gguf");
        const std::string text = test::read_text(folder / "greedy.json");
        const std::size_t begin = text.find("\"tokens\"");
        const std::size_t end = text.find(']', begin);
        std::vector<int> expected;
        for (std::size_t at = text.find('[', begin) + 1; at < end;) {
            std::size_t digits = 0;
            expected.push_back(std::stoi(text.substr(at, 12), &digits));
            at = text.find_first_of("0123456789]", at + digits);
        }
        REQUIRE(expected.size() == 40);
        Session session = make_session(runtime, 16384);
        session.sync(test::read_int_list(folder / "ids.json"));
        for (const int token : expected) {
            CHECK(test::best(session.logits()) == token);
            session.decode(token);
        }
    }
}
