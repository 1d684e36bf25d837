// Dense-trained models on selected blocks: exact while everything is selected, the same bits on
// every way to arrive, and the blocks that match the query beyond that.
#include "model/attention/retrofit.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_error.h"

using namespace skein;
using namespace skein::model;

namespace {

std::shared_ptr<Runtime> open_retrofit(const EngineOptions& options = {}, int top_k = 16) {
    const auto file = open_model_file(test::fixtures() / "llama-tiny" / "model-q8_0.gguf");
    ModelConfig config = file->config();
    const Weights weights = bind_weights(*file, config);
    retrofit(config);
    config.msa.top_k = top_k;
    config.msa.local_blocks = std::min(config.msa.local_blocks, top_k - 2);
    return std::make_shared<Runtime>(config, weights, options);
}

std::vector<float> logits_after(const std::shared_ptr<Runtime>& runtime,
                                std::span<const Token> tokens) {
    Session session = make_session(runtime, 1 << 20);
    session.sync(tokens);
    return test::copy(session.logits());
}

}  // namespace

TEST_SUITE("model/attention/retrofit") {
    TEST_CASE("retrofit equals dense attention bit for bit while at most 16 blocks exist") {
        const Tokens tokens = test::some_tokens(2100, 512);
        const auto path = test::fixtures() / "llama-tiny" / "model-q8_0.gguf";
        const auto dense = test::open_runtime(path);
        const auto retrofitted = open_retrofit();
        Session one = make_session(dense, 1 << 20);
        Session two = make_session(retrofitted, 1 << 20);
        for (const int n : {100, 1000, 2047, 2048}) {
            one.sync(std::span(tokens).first(static_cast<std::size_t>(n)));
            two.sync(std::span(tokens).first(static_cast<std::size_t>(n)));
            CAPTURE(n);
            CHECK(test::first_difference(test::copy(one.logits()), test::copy(two.logits())) == -1);
        }
        one.sync(tokens);
        two.sync(tokens);
        CHECK(test::first_difference(test::copy(one.logits()), test::copy(two.logits())) != -1);
    }

    TEST_CASE("retrofit: the scalar table gives the same bits when blocks are selected") {
        const Tokens tokens = test::some_tokens(640, 512);
        std::set<std::uint64_t> hashes;
        for (const CpuKernels* table : available_kernels()) {
            EngineOptions options;
            options.isa = table->isa;
            // Three of five blocks: selection and far blocks begin early, the scalar table is slow.
            const auto runtime = open_retrofit(options, 3);
            hashes.insert(test::hash_of(logits_after(runtime, tokens)));
        }
        CHECK(hashes.size() == 1);
        CHECK(!hashes.contains(test::hash_of(logits_after(open_retrofit(), tokens))));
    }

    TEST_CASE("retrofit: one hash for chunks, threads, forks, rewinds and decode") {
        const Tokens tokens = test::some_tokens(2700, 512);
        std::set<std::uint64_t> hashes;
        for (const int chunk : {37, 512}) {
            for (const int threads : {1, 3}) {
                EngineOptions options;
                options.prefill_chunk = chunk;
                options.threads = threads;
                hashes.insert(test::hash_of(logits_after(open_retrofit(options), tokens)));
            }
        }
        const auto runtime = open_retrofit();
        Session session = make_session(runtime, 1 << 20);
        session.sync(std::span(tokens).first(2690));
        Session fork = session.fork();
        for (std::size_t i = 2690; i < tokens.size(); ++i) fork.decode(tokens[i]);
        hashes.insert(test::hash_of(test::copy(fork.logits())));
        session.rewind(2500);
        session.sync(test::some_tokens(2600, 512, 9));  // other tokens in between
        session.sync(tokens);
        hashes.insert(test::hash_of(test::copy(session.logits())));
        CHECK(hashes.size() == 1);
    }

    TEST_CASE("retrofit: selected are the first, the last four and the best of the others") {
        const auto runtime = open_retrofit();
        Session session = make_session(runtime, 1 << 20, ChoiceRecording::steps);
        session.sync(test::some_tokens(4000, 512));
        session.decode(1);
        const auto log = session.choices()->read();
        REQUIRE(!log.empty());
        for (const auto& layer : log.back().layers)
            for (const auto& list : layer.blocks) {
                CHECK(list.size() == 16);
                CHECK(list.front() == 0);
                for (int i = 0; i < 4; ++i)
                    CHECK(list[static_cast<std::size_t>(12 + i)] == 4000 / 128 - 3 + i);
            }
    }

    TEST_CASE("retrofit: a bound is never below a score inside its block") {
        const auto runtime = open_retrofit();
        const KvLayout& layout = runtime->layout();
        REQUIRE(layout.has_bounds(0));
        CHECK(far_distance(runtime->config().msa) == 640);
        std::vector<std::byte> block(layout.block_bytes());
        test::Numbers numbers(4);
        std::vector<std::vector<float>> keys;
        for (int token = 0; token < kBlockTokens; ++token) {
            keys.push_back(numbers.floats(static_cast<std::size_t>(layout.head_dim())));
            layout.store(scalar_kernels(), block.data(), 0, 0, token, keys.back().data(),
                         keys.back().data());
        }
        const std::vector<float> none(static_cast<std::size_t>(runtime->config().rope_dim), 0.0F);
        const std::vector<float> ones(none.size(), 1.0F);
        seal_block(layout, scalar_kernels(), block.data(), 0, RopeKind::half_split,
                   runtime->config().rope_dim, ones.data(), none.data());
        const auto* smallest = reinterpret_cast<const float*>(block.data() + layout.bounds(0, 0));
        const float* largest = smallest + layout.head_dim();
        for (const auto& key : keys)
            for (std::size_t d = 0; d < key.size(); ++d) {
                CHECK(smallest[d] <= key[d] + 1e-4F);
                CHECK(largest[d] >= key[d] - 1e-4F);
            }
    }

    TEST_CASE("a control of sparse attention is refused for models without it") {
        const auto path = test::fixtures() / "llama-tiny" / "model-q8_0.gguf";
        ModelConfig config = open_model_file(path)->config();
        CHECK(test::contains(test::error_text([&] { keep_local_blocks(config); }), "has none"));
        EngineOptions options;
        options.attention = AttentionMode::dense;
        const auto engine = Engine::load(path, options);
        CHECK(engine->attention() == AttentionMode::model);
        CHECK(engine->numerics_version() == "skein-cpu-1");
    }

    TEST_CASE("retrofit is refused for models that are sparse already") {
        const auto file = open_model_file(test::fixtures() / "m3-tiny" / "model-f32.gguf");
        ModelConfig config = file->config();
        CHECK(test::contains(test::error_text([&] { retrofit(config); }), "use 'model'"));
        keep_local_blocks(config);
        CHECK(config.msa.local_blocks == config.msa.top_k);
    }
}
