// Same tokens, same bits: whatever the chunks, threads, instruction set and history.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "model/engine.h"
#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_path.h"

using namespace skein;
using namespace skein::model;

namespace {

/// Logits after each of `lengths` tokens, hashed together; one session grows from one to the next.
std::uint64_t hash_of_run(const std::shared_ptr<Runtime>& runtime, const Tokens& tokens,
                          std::span<const int> lengths) {
    Session session = make_session(runtime, runtime->config().max_context);
    std::vector<float> all;
    for (const int length : lengths) {
        session.sync(std::span(tokens).first(static_cast<std::size_t>(length)));
        const Logits logits = session.logits();
        all.insert(all.end(), logits.begin(), logits.end());
    }
    return test::hash_of(all);
}

std::vector<int> every_length(int n) {
    std::vector<int> lengths;
    for (int i = 1; i <= n; ++i) lengths.push_back(i);
    return lengths;
}

}  // namespace

TEST_SUITE("model/engine/bits") {
    TEST_CASE("tiny model: one hash for every chunk size, thread count, table and weight type") {
        const Tokens tokens = test::some_tokens(260, 512);
        const std::vector<int> lengths{128, 129, 255, 256, 257, 260};
        for (const char* file : {"model-q4_1.gguf", "model-q8_0.gguf", "model-f16.gguf"}) {
            for (const KvType kv : {KvType::int16, KvType::f32}) {
                if (kv == KvType::f32 && std::string_view(file) != "model-f16.gguf") continue;
                std::set<std::uint64_t> hashes;
                for (const CpuKernels* table : available_kernels()) {
                    for (const int chunk : {1, 7, 128, 512}) {
                        for (const int threads : {1, 2, 3}) {
                            // The scalar table is slow: one way of running it stands for all.
                            if (table->isa == Isa::scalar && (chunk != 7 || threads != 2)) continue;
                            EngineOptions options;
                            options.isa = table->isa;
                            options.prefill_chunk = chunk;
                            options.threads = threads;
                            options.kv = kv;
                            const auto runtime =
                                test::open_runtime(test::fixtures() / "llama-tiny" / file, options);
                            hashes.insert(hash_of_run(runtime, tokens, lengths));
                        }
                    }
                }
                CAPTURE(file);
                CHECK(hashes.size() == 1);
            }
        }
    }

    TEST_CASE("tiny model: decoding token by token gives the logits of prefills of every length") {
        const auto path = test::fixtures() / "llama-tiny" / "model-q4_1.gguf";
        const Tokens tokens = test::some_tokens(140, 512, 3);
        const auto runtime = test::open_runtime(path);
        std::vector<float> fresh;
        for (const int length : every_length(140)) {
            Session session = make_session(runtime, 512);
            session.sync(std::span(tokens).first(static_cast<std::size_t>(length)));
            const Logits logits = session.logits();
            fresh.insert(fresh.end(), logits.begin(), logits.end());
        }
        Session session = make_session(runtime, 512);
        std::vector<float> grown;
        for (const Token token : tokens) {
            session.decode(token);
            const Logits logits = session.logits();
            grown.insert(grown.end(), logits.begin(), logits.end());
        }
        CHECK(test::first_difference(fresh, grown) == -1);
    }

    TEST_CASE("SmolLM2: one hash for chunks 1, 7, 128, 512 and threads 1, 2, 3") {
        const Tokens tokens = test::some_tokens(131, 49152);
        std::set<std::uint64_t> hashes;
        for (const int threads : {1, 2, 3}) {
            EngineOptions options;
            options.threads = threads;
            const auto runtime = test::open_runtime(test::model_path(), options);
            for (const int chunk : {1, 7, 128, 512}) {
                // One sync a chunk is what a smaller prefill_chunk does, without loading again.
                Session session = make_session(runtime, 1024);
                for (std::size_t n = 0; n < tokens.size();) {
                    n = std::min(tokens.size(), n + static_cast<std::size_t>(chunk));
                    session.sync(std::span(tokens).first(n));
                }
                std::vector<float> all = test::copy(session.logits());
                session.rewind(128);
                const Logits earlier = session.logits();
                all.insert(all.end(), earlier.begin(), earlier.end());
                hashes.insert(test::hash_of(all));
            }
        }
        CHECK(hashes.size() == 1);
    }

    TEST_CASE("SmolLM2: the scalar table gives the same bits on a short prompt") {
        const Tokens tokens = test::some_tokens(2, 49152);
        const std::vector<int> lengths{1, 2};
        std::set<std::uint64_t> hashes;
        for (const CpuKernels* table : available_kernels()) {
            EngineOptions options;
            options.isa = table->isa;
            hashes.insert(
                hash_of_run(test::open_runtime(test::model_path(), options), tokens, lengths));
        }
        CHECK(hashes.size() == 1);
    }
}
