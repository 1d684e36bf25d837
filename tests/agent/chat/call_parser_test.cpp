#include "agent/chat/call_parser.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <random>
#include <string>

using skein::agent::escape_bytes;
using skein::agent::parse_hermes_reply;
using skein::agent::ParsedReply;

namespace {

std::string call(std::string_view name, std::string_view arguments) {
    return "<tool_call>\n{\"name\": \"" + std::string(name) +
           "\", \"arguments\": " + std::string(arguments) + "}\n</tool_call>";
}

}  // namespace

TEST_SUITE("agent/chat/call_parser") {
    TEST_CASE("call_parser: plain text stays as it is, to the byte") {
        const std::string text = "  two spaces, \xFF a bad byte, </tool_cal and a < b\n";
        const ParsedReply reply = parse_hermes_reply(text, false);
        CHECK(reply.text == text);
        CHECK(reply.calls.empty());
        CHECK(reply.malformed.empty());
        CHECK_FALSE(reply.unclosed_thinking);
        CHECK(parse_hermes_reply("", false).text.empty());
    }

    TEST_CASE("call_parser: calls come with their raw arguments, text around them is trimmed") {
        const ParsedReply reply = parse_hermes_reply(
            "First this.\n" + call("bash", R"({"command":  "ls" , "n": 1e1})") + "\n" +
                call("echo", "[1, 2]") + "\nDone.",
            false);
        REQUIRE(reply.calls.size() == 2);
        CHECK(reply.calls[0].name == "bash");
        CHECK(reply.calls[0].arguments == R"({"command":  "ls" , "n": 1e1})");
        CHECK(reply.calls[1].arguments == "[1, 2]");
        CHECK(reply.text == "First this.\n\n\nDone.");
    }

    TEST_CASE("call_parser: members come in any order and others are ignored") {
        const ParsedReply reply = parse_hermes_reply(
            "<tool_call>{ \"id\":\"0\",\"arguments\":{\"a\":{\"}\":\"\\\"]\"}} ,"
            " \"n\\u0061me\" : \"x\\\"y\" }</tool_call>",
            false);
        REQUIRE(reply.calls.size() == 1);
        CHECK(reply.calls[0].name == "x\"y");
        CHECK(reply.calls[0].arguments == "{\"a\":{\"}\":\"\\\"]\"}}");
    }

    TEST_CASE("call_parser: C04, our own syntax inside a string three levels deep is one call") {
        std::string body = "<![CDATA[ </tool_call> ]]> plain";
        for (int level = 0; level < 3; ++level) {
            boost::json::string quoted(body);
            const std::string inner = boost::json::serialize(boost::json::value(quoted));
            body = "<think>" + call("write", "{\"content\": " + inner + "}") +
                   "</think></tool_call><tool_call>";
        }
        const std::string arguments =
            "{\"content\": " + boost::json::serialize(boost::json::value(body)) + "}";
        const ParsedReply reply = parse_hermes_reply(call("write", arguments), false);
        REQUIRE(reply.calls.size() == 1);
        CHECK(reply.malformed.empty());
        const auto value = boost::json::parse(reply.calls[0].arguments);
        CHECK(value.at("content").as_string() == boost::json::string_view(body));
    }

    TEST_CASE("call_parser: C05, a call drafted in thinking is not a call") {
        const std::string draft = call("shell", R"({"c":"rm -r out"})");
        const std::string real = call("shell", R"({"c":"ls"})");
        for (const bool opened : {false, true}) {
            CAPTURE(opened);
            const ParsedReply reply = parse_hermes_reply(
                std::string(opened ? "" : "<think>") + "I could " + draft + "</think>" + real,
                opened);
            REQUIRE(reply.calls.size() == 1);
            CHECK(reply.calls[0].arguments == R"({"c":"ls"})");
            CHECK(reply.thinking == "I could " + draft);
            CHECK(reply.text.empty());
        }
        // The opening was part of the prompt and nobody said so: the closing tag alone decides.
        const ParsedReply reply = parse_hermes_reply("I could " + draft + "</think>" + real, false);
        REQUIRE(reply.calls.size() == 1);
        CHECK(reply.calls[0].arguments == R"({"c":"ls"})");
    }

    TEST_CASE("call_parser: C06, a call in thinking that never closes is no call, and said so") {
        const ParsedReply reply =
            parse_hermes_reply("<think>now " + call("shell", "{}"), false);
        CHECK(reply.unclosed_thinking);
        CHECK(reply.calls.empty());
        CHECK(reply.thinking.find("tool_call") != std::string::npos);
        CHECK(parse_hermes_reply("still thinking", true).unclosed_thinking);
    }

    TEST_CASE("call_parser: C01, broken calls are reported with their place, siblings stay") {
        const std::string good = call("echo", R"({"text":"ok"})");
        const std::string broken[] = {
            call("x", R"({"a": 1,})"),
            "<tool_call>\n{'name': 'x', 'arguments': {}}\n</tool_call>",
            "<tool_call>\n{name: \"x\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"x\",\\n\"arguments\": {}}\n</tool_call>",
            "<tool_call>\n</tool_call>",
            "<tool_call>\n[\"x\"]\n</tool_call>",
            "<tool_call>\n{\"name\": \"x\"}\n</tool_call>",
            "<tool_call>\n{\"name\": \"\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"name\": 3, \"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"x\", \"name\": \"y\", \"arguments\": {}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"x\", \"arguments\": {}} and more\n</tool_call>",
            "<tool_call>\n{\"name\": \"\xF0\x9F\x98\", \"arguments\": {\"p\":\"\xFF\"}}\n"
            "</tool_call>",
        };
        for (const std::string& bad : broken) {
            CAPTURE(bad);
            const ParsedReply reply = parse_hermes_reply(good + bad + good, false);
            CHECK(reply.calls.size() == 2);
            REQUIRE(reply.malformed.size() == 1);
            CHECK(reply.malformed[0].raw == bad);
            CHECK(reply.malformed[0].calls_before == 1);
            CHECK_FALSE(reply.malformed[0].error.empty());
            CHECK(escape_bytes(reply.malformed[0].error) == reply.malformed[0].error);
        }
        const ParsedReply comma = parse_hermes_reply(broken[0], false);
        CHECK(comma.malformed[0].error.find("at byte 35 of the object") != std::string::npos);
    }

    TEST_CASE("call_parser: a broken call hides nothing that could be the content of its strings") {
        const std::string inner = call("shell", R"({\"c\":\"rm\"})");
        const ParsedReply reply = parse_hermes_reply(
            "<tool_call>\n{\"name\": oops, \"arguments\": {\"content\": \"</tool_call>" + inner +
                "\"}}\n</tool_call>",
            false);
        CHECK(reply.calls.empty());
        CHECK(reply.malformed.size() == 1);
    }

    TEST_CASE("call_parser: a call cut at any byte is never a call") {
        const std::string whole = call("write", R"({"content": "a </tool_call> b", "n": [1, {}]})");
        for (std::size_t cut = 11; cut < whole.size(); ++cut) {
            CAPTURE(cut);
            const ParsedReply reply = parse_hermes_reply(whole.substr(0, cut), false);
            CHECK(reply.calls.empty());
            CHECK(reply.malformed.size() == 1);
        }
        CHECK(parse_hermes_reply(whole, false).calls.size() == 1);
    }

    TEST_CASE("call_parser: C13, stray closers are dropped and a bare call is reported") {
        const ParsedReply stray =
            parse_hermes_reply(call("echo", "{}") + "</tool_call>\nok", false);
        CHECK(stray.calls.size() == 1);
        CHECK(stray.malformed.empty());
        CHECK(stray.text == "ok");
        const ParsedReply bare =
            parse_hermes_reply("\n{\"name\": \"echo\", \"arguments\": {}}\n", false);
        CHECK(bare.calls.empty());
        REQUIRE(bare.malformed.size() == 1);
        CHECK(bare.malformed[0].error.find("<tool_call>") != std::string::npos);
        const ParsedReply prose =
            parse_hermes_reply("Write `{\"name\": \"echo\", \"arguments\": {}}` to call.", false);
        CHECK(prose.malformed.empty());
        CHECK(parse_hermes_reply("{\"city\": \"Paris\"}", false).malformed.empty());
    }

    TEST_CASE("call_parser: C12, a fenced command with pretended output is prose") {
        const ParsedReply reply =
            parse_hermes_reply("```sh\nmake test\n```\nOutput:\n42 passed", false);
        CHECK(reply.calls.empty());
        CHECK(reply.malformed.empty());
    }

    TEST_CASE("call_parser: deep nesting is refused, not recursed into") {
        const std::string deep(200000, '[');
        const ParsedReply reply = parse_hermes_reply(
            "<tool_call>{\"name\":\"x\",\"arguments\":" + deep + "}</tool_call>", false);
        CHECK(reply.calls.empty());
        CHECK(reply.malformed.size() == 1);
    }

    TEST_CASE("call_parser: any bytes give a result whose parts come from the reply") {
        const unsigned seed = 20261130;
        CAPTURE(seed);
        std::mt19937 engine(seed);
        const auto random = [&] { return static_cast<unsigned>(engine()); };
        const std::string parts[] = {"<think>", "</think>", "<tool_call>", "</tool_call>", "{", "}",
                                     "\"name\"", ":", "\"x\"", ",", "\"arguments\"", "\\", "\"",
                                     "\xF0\x9F", "[", "]", "1", "\n", "text"};
        for (int round = 0; round < 3000; ++round) {
            std::string bytes;
            for (unsigned i = random() % 24; i > 0; --i) {
                bytes += parts[random() % std::size(parts)];
            }
            CAPTURE(bytes);
            const ParsedReply reply = parse_hermes_reply(bytes, random() % 2 == 0);
            for (const auto& broken : reply.malformed) {
                CHECK(bytes.find(broken.raw) != std::string::npos);
            }
            for (const auto& found : reply.calls) {
                CHECK(bytes.find(found.arguments) != std::string::npos);
            }
        }
    }

    TEST_CASE("call_parser: escape_bytes keeps characters and shows every other byte") {
        CHECK(escape_bytes("a é 😀") == "a é 😀");
        CHECK(escape_bytes("\xF0\x9F\x98 \xFF\n\x7F") == "\\xF0\\x9F\\x98 \\xFF\\x0A\\x7F");
        CHECK(escape_bytes("\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80") ==
              "\\xC0\\x80\\xED\\xA0\\x80\\xF4\\x90\\x80\\x80");
    }
}
