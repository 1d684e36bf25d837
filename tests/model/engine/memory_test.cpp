// What contexts cost in memory, and contexts larger than it.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_error.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::model;

namespace {

/// The released MiniMax-M3: 60 layers, 4 KV heads of 128, 57 of them with index keys of 128.
ModelConfig minimax_m3() {
    ModelConfig config;
    config.n_heads = 64;
    config.n_kv_heads = 4;
    config.head_dim = 128;
    config.msa.index_dim = 128;
    for (int i = 0; i < 60; ++i) {
        LayerConfig layer;
        layer.n_kv_heads = 4;
        layer.attention = i < 3 ? AttentionKind::dense : AttentionKind::msa;
        config.layers.push_back(layer);
    }
    return config;
}

double bytes_per_token(const ModelConfig& config, KvType kv, KvType index) {
    return static_cast<double>(KvLayout(config, kv, index).block_bytes()) / kBlockTokens;
}

EngineOptions limited(std::size_t blocks, const std::filesystem::path& spill) {
    const auto layout = test::open_runtime(test::fixtures() / "m3-tiny" / "model-q8_0.gguf");
    EngineOptions options;
    options.kv_bytes_max = blocks * layout->layout().block_bytes();
    options.kv_spill_folder = spill;
    return options;
}

}  // namespace

TEST_SUITE("model/engine/memory") {
    TEST_CASE("bytes per token of MiniMax-M3 are those of the arithmetic, for every KV type") {
        const ModelConfig m3 = minimax_m3();
        ModelConfig no_index = m3;
        for (LayerConfig& layer : no_index.layers) layer.attention = AttentionKind::dense;
        struct Case {
            KvType type;
            double kv;  ///< 60 layers * 2 * 4 heads * 128 channels, times the bytes of an element
            double index;
        };
        // q8_0 elsewhere: 34 bytes for 32 channels.
        const Case cases[] = {{KvType::f32, 245760, 29184},
                              {KvType::f16, 122880, 14592},
                              {KvType::bf16, 122880, 14592},
                              {KvType::int16, 122880, 14592},
                              {KvType::int8, 65280, 7296}};
        for (const Case& one : cases) {
            CAPTURE(kv_type_name(one.type));
            const double kv = bytes_per_token(no_index, one.type, one.type);
            CHECK(std::fabs(kv / one.kv - 1) < 0.03);
            const double index = bytes_per_token(m3, one.type, one.type) - kv;
            CHECK(std::fabs((kv + index) / (one.kv + one.index) - 1) < 0.03);
        }
        const KvLayout parts(m3, KvType::bf16, KvType::bf16);
        CHECK(parts.key_value_bytes_per_token() == 122880);
        CHECK(parts.index_bytes_per_token() == 14592);
        const double codes = bytes_per_token(m3, KvType::int16, KvType::int13);
        CHECK(std::fabs(codes / (122880 + 14592) - 1) < 0.03);
    }

    TEST_CASE(
        "a context four times larger than the memory works through a mapped file, same bits") {
        const test::TemporaryDirectory folder;
        const auto path = test::fixtures() / "m3-tiny" / "model-q8_0.gguf";
        const Tokens tokens = test::some_tokens(1024 - 20, 512);  // 8 blocks
        Session plain = make_session(test::open_runtime(path), 16384);
        plain.sync(tokens);
        const auto small = test::open_runtime(path, limited(2, folder.path()));
        Session session = make_session(small, 16384);
        session.sync(tokens);
        CHECK(test::first_difference(test::copy(session.logits()), test::copy(plain.logits())) ==
              -1);
        CHECK(small->blocks().memory_bytes() == 2 * small->layout().block_bytes());
        CHECK(small->blocks().spilled_bytes() >= 6 * small->layout().block_bytes());
        CHECK(std::filesystem::is_empty(folder.path()));  // the file has no name
        Session fork = session.fork();
        session.rewind(100);
        fork.decode(3);
        plain.decode(3);
        CHECK(test::first_difference(test::copy(fork.logits()), test::copy(plain.logits())) == -1);
    }

    TEST_CASE("without a spill folder, or beyond its limit, the error says what to do") {
        const auto path = test::fixtures() / "m3-tiny" / "model-q8_0.gguf";
        const Tokens tokens = test::some_tokens(600, 512);
        Session bounded = make_session(test::open_runtime(path, limited(2, {})), 16384);
        CHECK(test::contains(test::error_text([&] { bounded.sync(tokens); }), "kv_spill_folder"));
        const test::TemporaryDirectory folder;
        EngineOptions options = limited(2, folder.path());
        options.kv_spill_bytes_max = options.kv_bytes_max;
        Session session = make_session(test::open_runtime(path, options), 16384);
        CHECK(test::contains(test::error_text([&] { session.sync(tokens); }), "its limit is"));
        options.kv_spill_folder = folder.path() / "missing";
        Session lost = make_session(test::open_runtime(path, options), 16384);
        CHECK(test::contains(test::error_text([&] { lost.sync(tokens); }), "cannot create a file"));
    }

    TEST_CASE("a synthetic context has the asked length and can be decoded on") {
        const auto runtime = test::open_runtime(test::fixtures() / "m3-tiny" / "model-q8_0.gguf");
        Session session = make_session(runtime, 16384);
        session.fill_synthetic(5000, 7);
        CHECK(session.size() == 5000);
        session.decode(1);
        for (const float logit : session.logits()) CHECK(std::isfinite(logit));
        Session other = make_session(runtime, 16384);
        other.fill_synthetic(5000, 7);
        other.decode(1);
        CHECK(test::first_difference(test::copy(other.logits()), test::copy(session.logits())) ==
              -1);
        CHECK(session.fork().shared_blocks(session) == 5001 / kBlockTokens);
        CHECK_THROWS_AS(session.fill_synthetic(20000, 7), Error);
    }
}
