#include "agent/text_stream.h"

#include <doctest/doctest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <thread>

#include "tests/agent/agent_fixture.h"

using namespace skein::agent;

TEST_SUITE("agent/text_stream") {
    TEST_CASE("text_stream: tokens from another thread arrive in order, on the executor") {
        const auto tokenizer = skein::test::byte_tokenizer();
        boost::asio::io_context context;
        auto work = boost::asio::make_work_guard(context);
        const auto here = std::this_thread::get_id();
        std::string shown;
        auto stream = std::make_shared<TextStream>(
            [&](const AgentEvent& event) {
                CHECK(std::this_thread::get_id() == here);
                shown += std::get<TextDelta>(event).text;
            },
            *tokenizer, std::vector<Token>{skein::test::kImEnd}, context.get_executor());
        const std::string text = "family 👨‍👩‍👧 and 한글";
        std::thread producer([&] {
            for (const Token token : tokenizer->encode(text)) stream->push(token);
            stream->push(skein::test::kImEnd);
            work.reset();
        });
        context.run();
        producer.join();
        stream->finish();
        CHECK(shown == text);
    }

    TEST_CASE("text_stream: what is unfinished is held back, then released once at the end") {
        const auto tokenizer = skein::test::byte_tokenizer();
        boost::asio::io_context context;
        std::vector<std::string> shown;
        auto stream = std::make_shared<TextStream>(
            [&](const AgentEvent& event) { shown.push_back(std::get<TextDelta>(event).text); },
            *tokenizer, std::vector<Token>{}, context.get_executor());
        for (const Token token : Tokens{'o', 'k', 0xF0, 0x9F}) stream->push(token);
        context.run();
        CHECK(shown == std::vector<std::string>{"ok"});
        stream->finish();
        stream->finish();
        CHECK(shown == std::vector<std::string>{"ok", "\xEF\xBF\xBD"});
    }
}
