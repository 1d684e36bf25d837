// Long contexts, caches and sparse selection where other engines have failed in public: full
// windows, block edges, memory that held something else before, every type of cache.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_error.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::model;

namespace {

/// Blocks of 16 of which 4 are selected: 64 tokens are the last that attend to everything.
std::filesystem::path tiny() {
    return test::fixtures() / "m3-tiny" / "model-q8_0.gguf";
}

/// Blocks of 128 of which 16 are selected.
std::filesystem::path long_model() {
    return test::fixtures() / "m3-long" / "model-bf16.gguf";
}

Tokens long_text(int count) {
    auto ids = test::read_int_list(test::fixtures() / "m3-long" / "ids.json");
    REQUIRE(ids.size() >= static_cast<std::size_t>(count));
    ids.resize(static_cast<std::size_t>(count));
    return ids;
}

std::span<const Token> first(const Tokens& tokens, int n) {
    return std::span(tokens).first(static_cast<std::size_t>(n));
}

std::vector<float> synced(Session& session, std::span<const Token> tokens) {
    session.sync(tokens);
    return test::copy(session.logits());
}

std::vector<float> prefilled(const std::shared_ptr<Runtime>& runtime,
                             std::span<const Token> tokens) {
    Session session = make_session(runtime, 16384);
    return synced(session, tokens);
}

/// The same weights with dense attention in every layer.
std::shared_ptr<Runtime> open_dense(const std::filesystem::path& path,
                                    const EngineOptions& options = {}) {
    const auto file = open_model_file(path);
    const ModelConfig config = file->config({.dense_approximation = true});
    return std::make_shared<Runtime>(config, bind_weights(*file, config), options);
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::fabs(static_cast<double>(a[i]) - b[i]));
    return largest;
}

/// Fills the next blocks to be handed out with ones: NaN as f32, as f16 and as a scale.
void poison(const Runtime& runtime) {
    BlockTable table = runtime.new_table();
    table.reserve(8 * kBlockTokens);
    for (int i = 0; i < 8; ++i)
        std::memset(table.writable_block(i * kBlockTokens), 0xFF, runtime.layout().block_bytes());
}

bool all_finite(const std::vector<float>& values) {
    return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

}  // namespace

TEST_SUITE("model/engine/long_context") {
    TEST_CASE("D01, D02, D03: a full window is an error at once, and nothing is ever shifted") {
        const auto runtime = test::open_runtime(tiny());
        const Tokens tokens = test::some_tokens(201, 512);
        Session session = make_session(runtime, 200);
        CHECK(test::contains(test::error_text([&] { session.sync(tokens); }), "200"));
        CHECK(session.size() == 0);  // refused before any work
        session.sync(first(tokens, 198));
        int decoded = 0;
        const std::string error = test::error_text([&] {
            for (; decoded < 200; ++decoded) session.decode(tokens[static_cast<std::size_t>(7)]);
        });
        CHECK(decoded == 2);
        CHECK(test::contains(error, "200"));
        CHECK(session.size() == 200);
        CHECK(std::ranges::equal(session.tokens().first(198), first(tokens, 198)));
        // What was there is still there: the same bits as in a window that never filled.
        session.rewind(150);
        CHECK(test::copy(session.logits()) == prefilled(runtime, first(tokens, 150)));
    }

    TEST_CASE("D05: chosen blocks lie all over a long context, not only at its end") {
        const auto runtime = test::open_runtime(long_model());
        const Tokens tokens = long_text(2500);  // 20 blocks, of which 16 are chosen
        Session session = make_session(runtime, 16384, ChoiceRecording::all);
        session.sync(tokens);
        std::vector<int> skipped(20, 0);
        for (const Choices& choices : session.choices()->read()) {
            if (choices.position < 2432) continue;  // those that see all 20
            for (const auto& layer : choices.layers)
                for (const auto& list : layer.blocks)
                    for (int b = 0; b < 20; ++b)
                        if (std::ranges::find(list, b) == list.end())
                            ++skipped[static_cast<std::size_t>(b)];
        }
        int early = 0;  // of the blocks that a window at the end would drop
        int late = 0;
        for (std::size_t b = 0; b < 20; ++b) (b < 4 ? early : late) += skipped[b];
        CHECK(early > 0);
        CHECK(late > early);  // random weights prefer no place
        CHECK(skipped[19] == 0);
    }

    TEST_CASE("D06, D08: up to as many blocks as are selected, sparse attention is dense") {
        const auto sparse = test::open_runtime(long_model());
        const auto dense = open_dense(long_model());
        const Tokens tokens = long_text(2304);
        Session a = make_session(sparse, 16384);
        Session b = make_session(dense, 16384);
        for (const int n : {1, 127, 128, 129, 255, 256, 257, 1920, 2047, 2048}) {
            CAPTURE(n);
            CHECK(synced(a, first(tokens, n)) == synced(b, first(tokens, n)));
        }
        // Beyond, one block of 17 or 18 is left out: a small difference, and no jump at the edge.
        for (const int n : {2049, 2050, 2175, 2176, 2177, 2304}) {
            CAPTURE(n);
            const auto logits = synced(a, first(tokens, n));
            const auto all = synced(b, first(tokens, n));
            const double scale = *std::max_element(all.begin(), all.end());
            CHECK(distance(logits, all) > 0);
            CHECK(distance(logits, all) < 0.25 * scale);
        }
    }

    TEST_CASE("D08: every short prompt runs, prefilled or decoded, and small blocks agree") {
        const auto sparse = test::open_runtime(tiny());
        const auto dense = open_dense(tiny());
        const Tokens tokens = test::some_tokens(96, 512, 4);
        Session decoded = make_session(sparse, 16384);
        for (int n = 1; n <= 96; ++n) {
            CAPTURE(n);
            decoded.decode(tokens[static_cast<std::size_t>(n - 1)]);
            const auto logits = prefilled(sparse, first(tokens, n));
            REQUIRE(test::copy(decoded.logits()) == logits);
            if (n > 64) continue;
            CHECK(distance(logits, prefilled(dense, first(tokens, n))) < 1e-3);
        }
    }

    TEST_CASE("D07: what a block held before never reaches a logit") {
        const auto lengths = {1, 63, 64, 65, 127, 128, 129, 255, 256, 257};
        const Tokens tokens = test::some_tokens(257, 512, 9);
        for (const KvType kv : {KvType::f32, KvType::f16, KvType::int16, KvType::int8}) {
            CAPTURE(kv_type_name(kv));
            EngineOptions options;
            options.kv = kv;
            if (kv != KvType::int16) options.index_kv = kv;
            const auto clean = test::open_runtime(tiny(), options);
            const auto poisoned = test::open_runtime(tiny(), options);
            for (const int n : lengths) {
                poison(*poisoned);
                const auto expected = prefilled(clean, first(tokens, n));
                REQUIRE(all_finite(expected));
                for (int again = 0; again < 3; ++again)
                    CHECK(prefilled(poisoned, first(tokens, n)) == expected);
            }
        }
    }

    TEST_CASE("D09: every type of cache works with sparse and dense attention, or is refused") {
        const Tokens tokens = test::some_tokens(3000, 512, 3);
        EngineOptions options;
        options.kv = options.index_kv = KvType::f32;
        const auto sparse = prefilled(test::open_runtime(tiny(), options), tokens);
        const auto dense = prefilled(open_dense(tiny(), options), tokens);
        const double scale = *std::max_element(dense.begin(), dense.end());
        // A type that loses bits may swap blocks of nearly equal scores, which dense attention
        // has not.
        const auto check = [&](const char* what, const std::shared_ptr<Runtime>& runtime,
                               const std::vector<float>& exact, double tolerance) {
            CAPTURE(what);
            CAPTURE(kv_type_name(options.kv));
            CAPTURE(kv_type_name(options.index_kv));
            CHECK(distance(prefilled(runtime, tokens), exact) < tolerance * scale);
        };
        for (const KvType kv :
             {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8}) {
            options = {};
            options.kv = kv;
            check("sparse", test::open_runtime(tiny(), options), sparse, 0.3);
            check("dense", open_dense(tiny(), options), dense, 0.01);
            options = {};
            options.index_kv = kv;
            check("index", test::open_runtime(tiny(), options), sparse, 0.3);
        }
        options = {};
        options.kv = KvType::int13;
        const std::string error = test::error_text([&] { test::open_runtime(tiny(), options); });
        CHECK(test::contains(error, "int13"));
        CHECK(test::contains(error, "int16"));  // one that is allowed
    }

    TEST_CASE("D10: restoring one session leaves the keys of all others alone") {
        const test::TemporaryDirectory folder;
        const auto runtime = test::open_runtime(tiny());
        const Tokens p = test::some_tokens(300, 512, 1);
        const Tokens q = test::some_tokens(310, 512, 2);
        Session other = make_session(runtime, 16384);
        other.sync(first(q, 290));
        {
            Session saved = make_session(runtime, 16384);
            saved.sync(p);
            saved.save(folder.path() / "p");
        }
        other.sync(first(q, 300));
        Session restored =
            load_session(runtime, folder.path() / "p", 16384, ChoiceRecording::digest, nullptr);
        other.sync(q);
        CHECK(test::copy(other.logits()) == prefilled(runtime, q));
        CHECK(test::copy(restored.logits()) == prefilled(runtime, p));
    }

    TEST_CASE("D13, A12: no length of a pass is special, whatever the type of the weights") {
        for (const char* file :
             {"m3-tiny/model-q8_0.gguf", "m3-long/model-bf16.gguf", "m3-tiny/model-f32.gguf"}) {
            CAPTURE(file);
            EngineOptions pieces;
            pieces.prefill_chunk = 16;
            EngineOptions whole;
            whole.prefill_chunk = 2048;
            const auto in_pieces = test::open_runtime(test::fixtures() / file, pieces);
            const auto at_once = test::open_runtime(test::fixtures() / file, whole);
            const Tokens tokens = test::some_tokens(1057, at_once->config().vocab_size, 6);
            Session session = make_session(in_pieces, 16384);
            const auto check = [&](int n) {
                CAPTURE(n);
                CHECK(synced(session, first(tokens, n)) == prefilled(at_once, first(tokens, n)));
            };
            for (int n = 31; n <= 65; ++n) check(n);
            for (const int n : {512, 1023, 1024, 1025, 1031, 1040, 1055, 1056, 1057}) check(n);
        }
    }
}
