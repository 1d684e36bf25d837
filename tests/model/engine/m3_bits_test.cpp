// Same tokens, same bits, same choices: sparse attention and experts under every way to arrive.

#include <doctest/doctest.h>

#include <set>

#include "tests/model/engine/engine_fixtures.h"

using namespace skein;
using namespace skein::model;

namespace {

constexpr int kTokens = 300;  // 18 blocks of 16, of which 4 are selected; three pages

std::filesystem::path tiny(const char* file) {
    return test::fixtures() / "m3-tiny" / file;
}

Tokens prompt(int count = kTokens) {
    return test::some_tokens(count, 512, 21);
}

std::span<const Token> first(const Tokens& tokens, int n) {
    return std::span(tokens).first(static_cast<std::size_t>(n));
}

/// Logits and digest of the choices behind them.
struct State {
    std::vector<float> logits;
    std::uint64_t digest;
    bool operator==(const State&) const = default;
};

State state_of(const Session& session) {
    return {test::copy(session.logits()), session.choice_digest()};
}

State fresh(const std::shared_ptr<Runtime>& runtime, std::span<const Token> tokens) {
    Session session = make_session(runtime, 16384);
    session.sync(tokens);
    return state_of(session);
}

}  // namespace

TEST_SUITE("model/engine/m3_bits") {
    TEST_CASE("sparse model: one hash for every chunk size, thread count, table and KV type") {
        const Tokens tokens = prompt();
        for (const KvType kv :
             {KvType::f32, KvType::f16, KvType::bf16, KvType::int16, KvType::int8}) {
            std::set<std::uint64_t> hashes;
            std::set<std::uint64_t> digests;
            for (const CpuKernels* table : available_kernels()) {
                for (const int chunk : {1, 7, 128, 512}) {
                    for (const int threads : {1, 2, 3}) {
                        const bool default_type = kv == KvType::int16;
                        // The scalar table is slow, and other types differ in loads alone.
                        if (table->isa == Isa::scalar && (chunk != 512 || threads != 2)) continue;
                        if (!default_type && threads != 2) continue;
                        EngineOptions options;
                        options.isa = table->isa;
                        options.prefill_chunk = chunk;
                        options.threads = threads;
                        options.kv = options.index_kv = kv;
                        const auto runtime = test::open_runtime(tiny("model-q8_0.gguf"), options);
                        Session session = make_session(runtime, 16384);
                        std::vector<float> all;
                        std::uint64_t digest = 0;
                        for (const int n : {64, 65, 128, 129, 257, kTokens}) {
                            session.sync(first(tokens, n));
                            const State state = state_of(session);
                            all.insert(all.end(), state.logits.begin(), state.logits.end());
                            digest = digest * 31 + state.digest;
                        }
                        hashes.insert(test::hash_of(all));
                        digests.insert(digest);
                    }
                }
            }
            CAPTURE(kv_type_name(kv));
            CHECK(hashes.size() == 1);
            CHECK(digests.size() == 1);
        }
    }

    TEST_CASE("sparse model: blocks of 128 beyond 2048 tokens, chunks and decode agree") {
        const auto ids = test::read_int_list(test::fixtures() / "m3-long" / "ids.json");
        std::set<std::uint64_t> hashes;
        for (const int chunk : {61, 512}) {
            EngineOptions options;
            options.prefill_chunk = chunk;
            const auto runtime =
                test::open_runtime(test::fixtures() / "m3-long" / "model-bf16.gguf", options);
            Session session = make_session(runtime, 16384);
            session.sync(std::span(ids).first(2300));
            for (std::size_t i = 2300; i < 2310; ++i) session.decode(ids[i]);
            const State grown = state_of(session);
            CHECK(fresh(runtime, std::span(ids).first(2310)) == grown);
            hashes.insert(test::hash_of(grown.logits));
        }
        CHECK(hashes.size() == 1);
    }

    TEST_CASE("bounds skip most pages, and choose what a full scan chooses, evicted pages too") {
        // 30,000 tokens: a decoded token bounds its pages first, a prefill scores all of them.
        const auto runtime = test::open_runtime(test::fixtures() / "m3-recall" / "model-bf16.gguf");
        const Tokens tokens = test::some_tokens(6, 900, 8);
        for (const bool evict : {false, true}) {
            CAPTURE(evict);
            Session prefilled = make_session(runtime, 32768, ChoiceRecording::all);
            prefilled.fill_synthetic(30000, 3);
            if (evict) {
                prefilled.evict(0, 1);
                prefilled.evict(20, 45);
            }
            Session decoded = prefilled.fork();
            const BoundedPages before = runtime->bounded_pages();
            for (const Token token : tokens) decoded.decode(token);
            const BoundedPages after = runtime->bounded_pages();
            Tokens all(prefilled.tokens().begin(), prefilled.tokens().end());
            all.insert(all.end(), tokens.begin(), tokens.end());
            prefilled.sync(all);
            CHECK(state_of(decoded) == state_of(prefilled));
            const auto one = decoded.choices()->read();
            const auto other = prefilled.choices()->read();
            REQUIRE(one.size() == tokens.size());
            REQUIRE(other.size() == tokens.size());
            for (std::size_t i = 0; i < one.size(); ++i)
                for (std::size_t layer = 0; layer < one[i].layers.size(); ++layer)
                    CHECK(one[i].layers[layer].blocks == other[i].layers[layer].blocks);
            const auto bounded = after.bounded - before.bounded;
            CHECK(bounded == 3 * 6 * 235);  // layers, tokens, pages
            CHECK(after.scored - before.scored < bounded / 2);
        }
    }

    TEST_CASE("sparse model: forks, rewinds and batch neighbours never change a bit") {
        const Tokens tokens = prompt();
        const auto runtime = test::open_runtime(tiny("model-f32.gguf"));
        Session trunk = make_session(runtime, 16384);
        trunk.sync(first(tokens, 200));
        std::vector<Session> forks;
        std::vector<Tokens> expected;
        for (int i = 0; i < 5; ++i) {
            forks.push_back(trunk.fork());
            expected.emplace_back(tokens.begin(), tokens.begin() + 200);
        }
        Session stranger = make_session(runtime, 16384);  // another length, another text
        stranger.sync(first(test::some_tokens(77, 512, 5), 77));
        for (int step = 0; step < 60; ++step) {
            std::vector<Session*> together;
            Tokens next;
            for (std::size_t i = 0; i < forks.size(); ++i) {
                together.push_back(&forks[i]);
                next.push_back((step * 7 + static_cast<int>(i) * 13) % 512);
                expected[i].push_back(next.back());
            }
            if (step % 2 == 0) {
                together.insert(together.begin() + 2, &stranger);
                next.insert(next.begin() + 2, step);
            }
            decode_together(together, next);
        }
        for (std::size_t i = 0; i < forks.size(); ++i) {
            CHECK(std::ranges::equal(forks[i].tokens(), expected[i]));
            CHECK(state_of(forks[i]) == fresh(runtime, expected[i]));
        }
        for (const int position : {199, 128, 127, 64, 17, 1}) {
            forks[0].rewind(position);
            CHECK(state_of(forks[0]) == fresh(runtime, first(expected[0], position)));
        }
        CHECK(state_of(forks[1]) == fresh(runtime, expected[1]));
        CHECK(state_of(trunk) == fresh(runtime, first(tokens, 200)));
    }

    TEST_CASE("a batch that cannot be evaluated whole changes no session") {
        const auto runtime = test::open_runtime(tiny("model-f32.gguf"));
        Session a = make_session(runtime, 16384);
        Session b = make_session(runtime, 3);
        a.sync(Tokens{1, 2, 3});
        b.sync(Tokens{1, 2, 3});
        Session* both[] = {&a, &b};
        CHECK_THROWS_AS(decode_together(both, Tokens{4, 4}), Error);
        CHECK(a.size() == 3);
        CHECK(b.size() == 3);
        Session c = make_session(runtime, 10);
        c.sync(Tokens{1, 2, 3});
        Session* other[] = {&a, &c};
        CHECK_THROWS_AS(decode_together(other, Tokens{4, 512}), Error);
        CHECK(a.size() == 3);
    }

    TEST_CASE("evicted blocks are never selected, and come back when restored") {
        const Tokens tokens = prompt();
        const auto runtime = test::open_runtime(tiny("model-f32.gguf"));
        Session session = make_session(runtime, 16384, ChoiceRecording::steps);
        session.sync(first(tokens, 290));
        Session kept = session.fork();
        CHECK_THROWS_AS(session.evict(0, 3), Error);  // the open block stays
        session.evict(0, 1);
        for (int i = 290; i < kTokens; ++i) session.decode(tokens[static_cast<std::size_t>(i)]);
        for (const Choices& choices : session.choices()->read()) {
            if (choices.position < 290) continue;
            for (const auto& layer : choices.layers)
                for (const auto& list : layer.blocks) CHECK(list.front() >= 8);  // 128 / 16
        }
        CHECK(state_of(session).logits != fresh(runtime, tokens).logits);
        session.rewind(290);
        session.restore(0, 1);
        session.sync(tokens);
        CHECK(state_of(session) == fresh(runtime, tokens));
        kept.sync(tokens);
        CHECK(state_of(kept) == fresh(runtime, tokens));
    }

    TEST_CASE("a choice log gives back what the layers chose, also after a rewind") {
        const Tokens tokens = prompt(150);
        const auto runtime = test::open_runtime(tiny("model-f32.gguf"));
        Session all = make_session(runtime, 16384, ChoiceRecording::all);
        all.sync(tokens);
        Session steps = make_session(runtime, 16384, ChoiceRecording::steps);
        steps.sync(first(tokens, 100));
        for (int i = 100; i < 150; ++i) steps.decode(tokens[static_cast<std::size_t>(i)]);
        steps.rewind(120);
        for (int i = 120; i < 150; ++i) steps.decode(tokens[static_cast<std::size_t>(i)]);
        const auto long_log = all.choices()->read();
        const auto short_log = steps.choices()->read();
        REQUIRE(long_log.size() == 150);
        REQUIRE(short_log.size() == 51);
        for (const Choices& choices : short_log) {
            const Choices& same = long_log[static_cast<std::size_t>(choices.position)];
            REQUIRE(choices.layers.size() == same.layers.size());
            CHECK(choices.layers.size() == 3);
            for (std::size_t i = 0; i < choices.layers.size(); ++i) {
                CHECK(choices.layers[i].blocks == same.layers[i].blocks);
                CHECK(choices.layers[i].experts == same.layers[i].experts);
                CHECK(choices.layers[i].experts.size() == 2);
            }
        }
        CHECK(steps.choices()->bytes() < 51 * 3 * 12);
        CHECK(make_session(runtime, 100).choices() == nullptr);
    }
}
