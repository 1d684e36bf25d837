#include "model/session.h"

#include <doctest/doctest.h>

#include <thread>

#include "model/engine.h"
#include "model/error.h"
#include "tests/model/engine/engine_fixtures.h"

using namespace skein;
using namespace skein::model;

namespace {

std::shared_ptr<Runtime> tiny(const EngineOptions& options = {}) {
    return test::open_runtime(test::fixtures() / "llama-tiny" / "model-q8_0.gguf", options);
}

std::vector<float> fresh_logits(const std::shared_ptr<Runtime>& runtime, const Tokens& tokens) {
    Session session = make_session(runtime, runtime->config().max_context);
    session.sync(tokens);
    return test::copy(session.logits());
}

struct StopAfter final : PrefillProgress {
    explicit StopAfter(int most) : calls_left(most) {}
    bool on_progress(int done, int total) override {
        last_done = done;
        last_total = total;
        return --calls_left > 0;
    }
    int calls_left;
    int last_done = 0;
    int last_total = 0;
};

}  // namespace

TEST_SUITE("model/session") {
    TEST_CASE("sync evaluates only what differs and says so") {
        const auto runtime = tiny();
        Session session = make_session(runtime, 1024);
        Tokens tokens = test::some_tokens(300, 512);
        SyncReport report = session.sync(tokens);
        CHECK(report.reused == 0);
        CHECK(report.evaluated == 300);
        report = session.sync(tokens);
        CHECK(report.reused == 300);
        CHECK(report.evaluated == 0);
        tokens[250] = (tokens[250] + 1) % 512;
        report = session.sync(tokens);
        CHECK(report.reused == 250);
        CHECK(report.evaluated == 50);
        CHECK(session.size() == 300);
        CHECK(Tokens(session.tokens().begin(), session.tokens().end()) == tokens);
        CHECK(test::copy(session.logits()) == fresh_logits(runtime, tokens));
    }

    TEST_CASE("sync to a shorter prefix keeps it and gives its logits") {
        const auto runtime = tiny();
        const Tokens tokens = test::some_tokens(200, 512);
        Session session = make_session(runtime, 1024);
        session.sync(tokens);
        const Tokens prefix(tokens.begin(), tokens.begin() + 130);
        const SyncReport report = session.sync(prefix);
        CHECK(report.reused == 130);
        CHECK(report.evaluated == 0);
        CHECK(test::copy(session.logits()) == fresh_logits(runtime, prefix));
        session.sync({});
        CHECK(session.size() == 0);
        CHECK(session.kv_bytes() == 0);
    }

    TEST_CASE("rewinding to any position and continuing gives the bits of never having left") {
        const auto runtime = tiny();
        const Tokens tokens = test::some_tokens(300, 512);
        const auto expected = fresh_logits(runtime, tokens);
        Session session = make_session(runtime, 1024);
        session.sync(tokens);
        for (const int position : {299, 257, 256, 255, 200, 129, 128, 127, 1, 0}) {
            CAPTURE(position);
            session.rewind(position);
            CHECK(session.size() == position);
            if (position > 0) {
                const Tokens prefix(tokens.begin(), tokens.begin() + position);
                CHECK(test::copy(session.logits()) == fresh_logits(runtime, prefix));
            }
            for (int i = 0; i < 5; ++i) session.decode(7 + i);  // another continuation, given up
            const SyncReport report = session.sync(tokens);
            CHECK(report.reused >= position);
            CHECK(test::copy(session.logits()) == expected);
        }
    }

    TEST_CASE("a fork shares full blocks, copies the open one, and the two never meet again") {
        const auto runtime = tiny();
        const std::size_t block = runtime->layout().block_bytes();
        const Tokens tokens = test::some_tokens(380, 512);
        const std::span<const Token> all(tokens);
        Session parent = make_session(runtime, 1024);
        parent.sync(all.first(200));
        Session child = parent.fork();
        CHECK(test::copy(child.logits()) == test::copy(parent.logits()));
        CHECK(parent.kv_bytes() == 2 * block);
        CHECK(child.kv_bytes() == 2 * block);
        CHECK(runtime->blocks_in_use() == 3);  // one shared, one open block each
        parent.sync(tokens);
        Tokens other(tokens.begin(), tokens.begin() + 200);
        for (int i = 0; i < 100; ++i) other.push_back(i);
        child.sync(other);
        CHECK(runtime->blocks_in_use() == 1 + 2 + 2);
        CHECK(test::copy(parent.logits()) == fresh_logits(runtime, tokens));
        CHECK(test::copy(child.logits()) == fresh_logits(runtime, other));
        child.rewind(60);  // inside the shared block: the parent must not notice
        for (int i = 0; i < 70; ++i) child.decode(i);
        CHECK(test::copy(parent.logits()) == fresh_logits(runtime, tokens));
        parent.decode(5);
        parent.rewind(380);
        CHECK(test::copy(parent.logits()) == fresh_logits(runtime, tokens));
    }

    TEST_CASE("a fork outlives its parent, and blocks come back when sessions end") {
        const auto runtime = tiny();
        const Tokens tokens = test::some_tokens(256, 512);
        std::unique_ptr<Session> child;
        {
            Session parent = make_session(runtime, 1024);
            parent.sync(tokens);
            child = std::make_unique<Session>(parent.fork());
            CHECK(runtime->blocks_in_use() == 2);
        }
        CHECK(runtime->blocks_in_use() == 2);
        CHECK(test::copy(child->logits()) == fresh_logits(runtime, tokens));
        child.reset();
        CHECK(runtime->blocks_in_use() == 0);
    }

    TEST_CASE("progress is told after every chunk and can stop a prefill at a valid place") {
        EngineOptions options;
        options.prefill_chunk = 64;
        const auto runtime = tiny(options);
        const Tokens tokens = test::some_tokens(300, 512);
        Session session = make_session(runtime, 1024);
        StopAfter progress(2);
        const SyncReport report = session.sync(tokens, &progress);
        CHECK(report.evaluated == 128);
        CHECK(progress.last_done == 128);
        CHECK(progress.last_total == 300);
        CHECK(session.size() == 128);
        CHECK(test::copy(session.logits()) ==
              fresh_logits(runtime, Tokens(tokens.begin(), tokens.begin() + 128)));
        CHECK(session.sync(tokens).evaluated == 172);
        CHECK(test::copy(session.logits()) == fresh_logits(runtime, tokens));
    }

    TEST_CASE("refusals leave the timeline as it was") {
        const auto runtime = tiny();
        Session session = make_session(runtime, 100);
        Tokens tokens = test::some_tokens(100, 512);
        session.sync(tokens);
        const auto before = test::copy(session.logits());
        CHECK_THROWS_WITH_AS(session.decode(1), doctest::Contains("101 tokens do not fit"), Error);
        Tokens bad = tokens;
        bad[90] = 512;
        CHECK_THROWS_WITH_AS(session.sync(bad), doctest::Contains("token 512 at position 90"),
                             Error);
        bad[90] = -1;
        CHECK_THROWS_WITH_AS(session.sync(bad), doctest::Contains("token -1 at position 90"),
                             Error);
        CHECK_THROWS_AS(session.rewind(101), Error);
        CHECK_THROWS_AS(session.rewind(-1), Error);
        CHECK(session.size() == 100);
        CHECK(test::copy(session.logits()) == before);
    }

    TEST_CASE("running out of KV memory is an error with a remedy; what was evaluated stays") {
        EngineOptions options;
        options.prefill_chunk = 128;
        options.kv_bytes_max = 2 * tiny()->layout().block_bytes();
        const auto runtime = tiny(options);
        Session session = make_session(runtime, 1024);
        const Tokens tokens = test::some_tokens(300, 512);
        CHECK_THROWS_WITH_AS(session.sync(tokens), doctest::Contains("kv_bytes_max"), Error);
        CHECK(session.size() == 256);
        session.rewind(100);
        CHECK(test::copy(session.logits()).size() == 512);
    }

    TEST_CASE("sessions of one engine run in different threads and keep their bits") {
        const auto runtime = tiny();
        std::vector<std::vector<float>> expected(4);
        std::vector<std::vector<float>> got(4);
        for (std::size_t i = 0; i < 4; ++i)
            expected[i] = fresh_logits(runtime, test::some_tokens(150, 512, i));
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                Session session = make_session(runtime, 1024);
                for (const Token token : test::some_tokens(150, 512, i)) session.decode(token);
                got[i] = test::copy(session.logits());
            });
        }
        for (auto& thread : threads) thread.join();
        for (std::size_t i = 0; i < 4; ++i) CHECK(got[i] == expected[i]);
    }
}
