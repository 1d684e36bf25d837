// A saved timeline goes on bit for bit and evaluates nothing; anything else than the same model,
// numerics and undamaged file is refused.
#include "model/snapshot.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/model/engine/engine_fixtures.h"
#include "tests/support/model_error.h"
#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::model;

namespace {

std::shared_ptr<Runtime> sparse_runtime(const EngineOptions& options = {}) {
    return test::open_runtime(test::fixtures() / "m3-tiny" / "model-q8_0.gguf", options);
}

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::string file_text(const std::filesystem::path& path) {
    return test::read_text(path);
}

void write_text(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_SUITE("model/snapshot") {
    TEST_CASE("a restored session evaluates nothing and goes on in equal bits") {
        const test::TemporaryDirectory folder;
        const auto runtime = sparse_runtime();
        for (const int length : {1, 127, 128, 129, 300}) {
            CAPTURE(length);
            const auto path = folder.path() / "session.skv";
            const Tokens tokens = test::some_tokens(length, 512);
            Session session = make_session(runtime, 16384);
            session.sync(tokens);
            const auto logits = test::copy(session.logits());
            const std::uint64_t digest = session.choice_digest();
            session.save(path, bytes_of("sampler state"));
            std::vector<std::byte> extra;
            Session back = load_session(runtime, path, 16384, ChoiceRecording::digest, &extra);
            CHECK(extra == bytes_of("sampler state"));
            CHECK(std::ranges::equal(back.tokens(), tokens));
            CHECK(back.choice_digest() == digest);
            CHECK(test::first_difference(test::copy(back.logits()), logits) == -1);
            const SyncReport report = back.sync(tokens);
            CHECK(report.evaluated == 0);
            CHECK(report.reused == length);
            for (int i = 0; i < 20; ++i) {
                session.decode(i);
                back.decode(i);
            }
            CHECK(test::first_difference(test::copy(back.logits()), test::copy(session.logits())) ==
                  -1);
            CHECK(back.choice_digest() == session.choice_digest());
        }
    }

    TEST_CASE("a snapshot taken after a rewind or an eviction says so") {
        const test::TemporaryDirectory folder;
        const auto path = folder.path() / "session.skv";
        const auto runtime = sparse_runtime();
        const Tokens tokens = test::some_tokens(400, 512);
        Session session = make_session(runtime, 16384);
        session.sync(tokens);
        session.evict(0, 2);
        session.rewind(390);
        session.save(path);  // no logits are known here
        Session back = load_session(runtime, path, 16384, ChoiceRecording::digest, nullptr);
        CHECK(test::first_difference(test::copy(back.logits()), test::copy(session.logits())) ==
              -1);
        back.sync(tokens);
        session.sync(tokens);
        CHECK(test::first_difference(test::copy(back.logits()), test::copy(session.logits())) ==
              -1);
    }

    TEST_CASE("what lies behind the last token never gets into a snapshot") {
        const test::TemporaryDirectory folder;
        const auto runtime = sparse_runtime();
        std::string files[2];
        for (int i = 0; i < 2; ++i) {
            Session session = make_session(runtime, 16384);
            session.sync(test::some_tokens(100, 512));
            if (i == 1) {  // other tokens lay there once
                session.sync(test::some_tokens(128, 512));
                session.rewind(100);
            }
            (void)session.logits();
            session.save(folder.path() / "s.skv");
            files[i] = file_text(folder.path() / "s.skv");
        }
        CHECK(files[0] == files[1]);
    }

    TEST_CASE("a snapshot of another model, numerics version or context is refused") {
        const test::TemporaryDirectory folder;
        const auto path = folder.path() / "session.skv";
        Session session = make_session(sparse_runtime(), 16384);
        session.sync(test::some_tokens(100, 512));
        session.save(path);
        const auto message = [&](const std::shared_ptr<Runtime>& runtime, int context) {
            return test::error_text(
                [&] { load_session(runtime, path, context, ChoiceRecording::digest, nullptr); });
        };
        const auto other = test::open_runtime(test::fixtures() / "m3-tiny" / "model-f32.gguf");
        CHECK(test::contains(message(other, 16384), "another model"));
        EngineOptions options;
        options.kv = KvType::f16;
        CHECK(test::contains(message(sparse_runtime(options), 16384), "skein-cpu-1-kv-f16"));
        CHECK(test::contains(message(sparse_runtime(), 99), "do not fit the context of 99"));
    }

    TEST_CASE("a truncated or damaged snapshot is refused, wherever the damage is") {
        const test::TemporaryDirectory folder;
        const auto path = folder.path() / "session.skv";
        const auto runtime = sparse_runtime();
        Session session = make_session(runtime, 16384);
        session.sync(test::some_tokens(200, 512));
        session.save(path);
        const std::string whole = file_text(path);
        const auto loads = [&] {
            return test::error_text(
                [&] { load_session(runtime, path, 16384, ChoiceRecording::digest, nullptr); });
        };
        CHECK(loads().empty());
        test::Numbers numbers(3);
        for (const std::size_t length :
             {std::size_t{0}, std::size_t{7}, std::size_t{16}, std::size_t{100}, std::size_t{4096},
              whole.size() / 2, whole.size() - 1}) {
            write_text(path, whole.substr(0, length));
            CAPTURE(length);
            CHECK(!loads().empty());
        }
        write_text(path, whole + "x");
        CHECK(!loads().empty());
        int harmless = 0;  // the padding before the blocks is not checked
        for (int i = 0; i < 60; ++i) {
            std::string damaged = whole;
            const auto at = static_cast<std::size_t>(numbers.below(static_cast<int>(whole.size())));
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << numbers.below(8)));
            write_text(path, damaged);
            if (loads().empty()) ++harmless;
        }
        CHECK(harmless <= 2);
        write_text(path, "SKEINKV0 something else entirely");
        CHECK(test::contains(loads(), "no snapshot of this version"));
        CHECK(test::contains(test::error_text([&] { session.save("/nowhere/at/all.skv"); }),
                             "cannot create"));
    }

    TEST_CASE("saving over a snapshot that cannot be replaced keeps the old one") {
        const test::TemporaryDirectory folder;
        const auto path = folder.path() / "taken";
        std::filesystem::create_directories(path / "inside");  // a folder: rename must fail
        Session session = make_session(sparse_runtime(), 16384);
        session.sync(test::some_tokens(10, 512));
        CHECK(test::contains(test::error_text([&] { session.save(path); }), "rename"));
        CHECK(std::filesystem::is_directory(path / "inside"));
        int files = 0;
        for ([[maybe_unused]] const auto& entry :
             std::filesystem::directory_iterator(folder.path()))
            ++files;
        CHECK(files == 1);  // the part file is gone
    }
}
