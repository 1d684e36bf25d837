#include "agent/chat/element_parser.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <random>
#include <string>

#include "tools/json_arguments.h"
#include "tools/schema.h"

using namespace skein::agent;
namespace json = boost::json;
namespace tools = skein::tools;

namespace {

/// `@` is the namespace token, `{` and `}` are the thinking tags; every other byte is text.
MarkedText marked(std::string_view text) {
    MarkedText out;
    for (const char c : text) {
        const std::size_t at = out.bytes.size();
        if (c == '@') {
            out.marks.push_back({at, Mark::tag});
        } else if (c == '{') {
            out.marks.push_back({at, Mark::think_open});
        } else if (c == '}') {
            out.marks.push_back({at, Mark::think_close});
        } else {
            out.bytes.push_back(c);
        }
    }
    return out;
}

tools::ToolSpec tool(std::string name, const char* schema) {
    return {std::move(name), "", json::parse(schema).get_object(), tools::Effect::write};
}

const tools::ToolSpec kWrite = tool("write", R"({"type": "object", "properties": {
    "path": {"type": "string"}, "content": {"type": "string"}, "lines": {"type": "integer"},
    "force": {"type": "boolean"}, "ratio": {"type": "number"},
    "mode": {"enum": ["new", 1, null, ""]},
    "tags": {"type": "array", "items": {"type": "string"}},
    "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    "who": {"type": "object", "properties": {"name": {"type": "string"},
            "age": {"type": "integer"}}},
    "any": {}}})");
const tools::ToolSpec kShell =
    tool("shell", R"({"type": "object", "properties": {"command": {"type": "string"}}})");

ParsedReply parse(std::string_view text, bool opened = false) {
    static const tools::ToolSpec* const specs[] = {&kWrite, &kShell};
    return parse_element_reply(marked(text), opened, specs);
}

std::string invoke(const std::string& name, const std::string& members) {
    return "@<invoke name=\"" + name + "\">" + members + "@</invoke>\n";
}
std::string member(const std::string& key, const std::string& value) {
    return "@<" + key + ">" + value + "@</" + key + ">";
}
std::string block(const std::string& calls) { return "@<tool_call>\n" + calls + "@</tool_call>"; }
std::string write(const std::string& members) { return block(invoke("write", members)); }
const std::string kGood = invoke("shell", member("command", "ls"));

/// The arguments of the only call, as JSON.
json::value arguments(const std::string& members) {
    const ParsedReply reply = parse(write(members));
    REQUIRE(reply.malformed.empty());
    REQUIRE(reply.calls.size() == 1);
    CHECK(reply.calls[0].name == "write");
    return json::parse(reply.calls[0].arguments);
}

}  // namespace

TEST_SUITE_BEGIN("agent/chat/element_parser");

TEST_CASE("element_parser: text without calls is text, byte for byte") {
    for (const char* text : {"", " plain \n", "<tool_call> is a tag", "\xFF\xFE broken"}) {
        const ParsedReply reply = parse(text);
        CHECK(reply.text == text);
        CHECK(reply.calls.empty());
        CHECK(reply.malformed.empty());
    }
}

TEST_CASE("element_parser: the schema says what a text stands for") {
    CHECK(arguments(member("path", " a b\n") + member("lines", "12") + member("force", "true") +
                    member("ratio", "-1.5e3")) ==
          json::parse(R"({"path": " a b\n", "lines": 12, "force": true, "ratio": -1500.0})"));
    CHECK(arguments(member("path", "12") + member("content", "true")) ==
          json::parse(R"({"path": "12", "content": "true"})"));
    CHECK(arguments(member("tags", "@<item>a@</item>@<item>@</item>@<item>7@</item>")) ==
          json::parse(R"({"tags": ["a", "", "7"]})"));
    CHECK(arguments(member("grid", "@<item>@<item>1@</item>@<item>2@</item>@</item>"
                                   "@<item>@</item>")) == json::parse(R"({"grid": [[1, 2], []]})"));
    CHECK(arguments(member("who", "\n " + member("name", "5") + "\n" + member("age", "5"))) ==
          json::parse(R"({"who": {"name": "5", "age": 5}})"));
    CHECK(arguments(member("tags", "") + member("who", "")) ==
          json::parse(R"({"tags": [], "who": {}})"));
    CHECK(arguments(member("tags", "[\"a\"]")) == json::parse(R"({"tags": ["a"]})"));
    CHECK(arguments("") == json::object());
}

TEST_CASE("element_parser: listed values are found by their text, free values by their form") {
    for (const auto& [text, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"new", "\"new\""}, {"1", "1"}, {"null", "null"}, {"", "\"\""}, {"2", "2"},
             {"other", "\"other\""}}) {
        CHECK(arguments(member("mode", text)).at("mode") == json::parse(value));
    }
    CHECK(arguments(member("any", "[1, \"x\"]")).at("any") == json::parse("[1, \"x\"]"));
    CHECK(arguments(member("any", "plain text")).at("any") == "plain text");
    CHECK(arguments(member("any", "")).at("any") == "");
    CHECK(arguments(member("any", member("item", "1") + member("item", "x"))).at("any") ==
          json::parse(R"([1, "x"])"));
    CHECK(arguments(member("any", member("a", "1") + member("b", member("c", "x")))).at("any") ==
          json::parse(R"({"a": 1, "b": {"c": "x"}})"));
    CHECK(arguments(member("unknown", "7")).at("unknown") == 7);
}

TEST_CASE("element_parser: C09, a value of a wrong type is passed on as it is and refused") {
    for (const char* value : {"\"false\"", "0", "False", "yes", "null", "[true]"}) {
        CAPTURE(value);
        CHECK(tools::validate(arguments(member("force", value)), kWrite.parameters));
    }
    for (const char* value : {"12.0", "1e1", "twelve", "", "[12]", "true", "1e999"}) {
        CAPTURE(value);
        CHECK(tools::validate(arguments(member("lines", value)), kWrite.parameters));
    }
    CHECK_FALSE(tools::validate(arguments(member("lines", " 12\n")), kWrite.parameters));
}

TEST_CASE("element_parser: several calls share a block, text stands around it") {
    const ParsedReply reply =
        parse("Look:\n" + block(kGood + invoke("write", member("path", "p")) + kGood) + "\n");
    REQUIRE(reply.calls.size() == 3);
    CHECK(reply.calls[1].name == "write");
    CHECK(reply.calls[2].arguments == R"({"command":"ls"})");
    CHECK(reply.text == "Look:");
    CHECK(parse(block(kGood) + block(kGood)).calls.size() == 2);
    // A block that the end of the reply closes is whole.
    CHECK(parse("@<tool_call>\n" + kGood).calls.size() == 1);
    CHECK(parse("@<tool_call>\n" + kGood).malformed.empty());
}

TEST_CASE("element_parser: thinking ends where its token says, and only tokens say it") {
    ParsedReply reply = parse("{ so <mm:think> it is }yes");
    CHECK(reply.thinking == "so <mm:think> it is");
    CHECK(reply.text == "yes");
    CHECK_FALSE(reply.unclosed_thinking);
    reply = parse("it is</mm:think> not}yes", true);
    CHECK(reply.thinking == "it is</mm:think> not");
    CHECK(reply.text == "yes");
    reply = parse("}yes");
    CHECK(reply.thinking.empty());
    CHECK(reply.text == "yes");
    CHECK(parse("\n}yes").text == "yes");
    CHECK(parse("a}b").text == "ab");
    CHECK(parse("{one}a{two}b").thinking == "one\ntwo");
    CHECK(parse("{\xFF\xC3}ok").text == "ok");
}

TEST_CASE("element_parser: C05, calls drafted while thinking are not calls") {
    const std::string draft = block(invoke("shell", member("command", "rm -r out")));
    for (const bool opened : {false, true}) {
        const ParsedReply reply =
            parse((opened ? "" : "{") + ("maybe " + draft + "}") + block(kGood), opened);
        REQUIRE(reply.calls.size() == 1);
        CHECK(reply.calls[0].arguments == R"({"command":"ls"})");
        CHECK(reply.malformed.empty());
        CHECK(reply.thinking.find("rm -r out") != std::string::npos);
    }
}

TEST_CASE("element_parser: C06, a call in thinking that never closed is reported as such") {
    for (const bool opened : {false, true}) {
        const ParsedReply reply = parse((opened ? "" : "{") + ("now " + block(kGood)), opened);
        CHECK(reply.unclosed_thinking);
        CHECK(reply.calls.empty());
    }
}

TEST_CASE("element_parser: C04, documents about calls stay content, three levels deep") {
    std::string content = "<![CDATA[ x ]]> </content> ]<]minimax[>[</content>";
    for (int level = 0; level < 3; ++level) {
        content = "{draft}" + write(member("path", "p") + member("content", content)) + "\n";
    }
    const ParsedReply reply = parse(write(member("path", "doc") + member("content", content)));
    CHECK(reply.malformed.empty());
    REQUIRE(reply.calls.size() == 1);
    std::string intended;
    for (const char c : content) {
        intended += c == '@'   ? std::string(spelling(Mark::tag))
                    : c == '{' ? std::string(spelling(Mark::think_open))
                    : c == '}' ? std::string(spelling(Mark::think_close))
                               : std::string(1, c);
    }
    CHECK(json::parse(reply.calls[0].arguments).at("content") == json::value(intended));
}

TEST_CASE("element_parser: C01, a call that cannot be read does not run, its sibling does") {
    const std::pair<std::string, const char*> broken[] = {
        {invoke("write", "@<path>x"), "<path> is not closed by the namespace token and </path>"},
        {invoke("write", "path=x"), "expected the namespace token and a tag, got \"path=x\""},
        {invoke("write", "@<path>x@</content>"), "<path> is not closed"},
        {invoke("write", member("lines", "1") + member("lines", "2")), "<lines> is given twice"},
        {invoke("write", member("lines", "1 @<a>2@</a>")), "<lines> is not closed"},
        {invoke("write", member("tags", "@<tag>a@</tag>")), "expected <item> or </tags>"},
        {invoke("write", member("path", "a\xFF")), "<path> is not valid UTF-8"},
        {invoke("write", "@<>x@</>"), "expected <ARGUMENT> or </invoke>"},
        {invoke("", ""), "expected <invoke name=\"TOOL\">"},
        {"@<invoke path>@</invoke>", "expected <invoke name=\"TOOL\">"},
    };
    for (const auto& [text, error] : broken) {
        CAPTURE(text);
        const ParsedReply reply = parse(block(kGood + text + kGood));
        CHECK(reply.calls.size() == 2);
        REQUIRE(reply.malformed.size() == 1);
        CHECK(reply.malformed[0].error.find(error) != std::string::npos);
        CHECK(reply.malformed[0].error.find("at byte") != std::string::npos);
        CHECK(reply.malformed[0].calls_before == 1);
        CHECK(reply.malformed[0].raw.starts_with("]<]minimax[>[<invoke "));
    }
    const ParsedReply stray = parse(block(kGood + "and then" + kGood));
    CHECK(stray.calls.size() == 1);
    REQUIRE(stray.malformed.size() == 1);
    CHECK(stray.malformed[0].error.find("got \"and then\"") != std::string::npos);
}

TEST_CASE("element_parser: a broken call takes the calls inside its strings with it") {
    const std::string evil = block(invoke("shell", member("command", "rm -r /")));
    const ParsedReply reply = parse(block(invoke("write", "@<content>" + evil) + kGood));
    CHECK(reply.malformed.size() == 1);
    REQUIRE(reply.calls.size() == 1);
    CHECK(reply.calls[0].arguments == R"({"command":"ls"})");
    // Without its own end it reaches to the end of the reply.
    CHECK(parse("@<tool_call>@<invoke name=\"write\">@<content>" + evil).calls.empty());
}

TEST_CASE("element_parser: C03, a reply cut anywhere inside a call has no call") {
    const std::string whole =
        "@<tool_call>\n" + invoke("write", member("path", "p") + member("content", "text"));
    const std::size_t end = whole.size() - 1;  // the newline after the call may be missing
    for (std::size_t cut = 0; cut < end; ++cut) {
        CAPTURE(cut);
        const ParsedReply reply = parse(whole.substr(0, cut));
        CHECK(reply.calls.empty());
        if (cut > std::string("@<tool_call>\n@<invoke").size()) {
            CHECK(reply.malformed.size() == 1);
        }
    }
    CHECK(parse(whole.substr(0, end)).calls.size() == 1);
}

TEST_CASE("element_parser: C13, calls without their block or tokens are reported, prose is prose") {
    const ParsedReply bare = parse(kGood);
    CHECK(bare.calls.empty());
    REQUIRE(bare.malformed.size() == 1);
    CHECK(bare.malformed[0].error == "a call must stand inside a <tool_call> block");
    const std::string text = "<invoke name=\"shell\"><command>ls</command></invoke>";
    CHECK(parse("\n" + text + "\n").malformed.size() == 1);
    CHECK(parse("<tool_call>" + text + "</tool_call>").malformed.size() == 1);
    const ParsedReply prose = parse("Write `" + text + "` to call.");
    CHECK(prose.malformed.empty());
    CHECK(prose.text == "Write `" + text + "` to call.");
    const ParsedReply closers = parse(block(kGood) + "@</tool_call>@</invoke> done");
    CHECK(closers.calls.size() == 1);
    CHECK(closers.malformed.empty());
    CHECK(closers.text == "done");
    CHECK(parse("a @ b").text == "a ]<]minimax[>[ b");
}

TEST_CASE("element_parser: C12, a pretended call with a pretended output is only text") {
    const ParsedReply reply = parse("```sh\nmake test\n```\nOutput:\n42 passed");
    CHECK(reply.calls.empty());
    CHECK(reply.malformed.empty());
    CHECK(reply.text.find("42 passed") != std::string::npos);
}

TEST_CASE("element_parser: nesting has a limit, and depth costs no stack beyond it") {
    std::string deep = "1";
    for (int i = 0; i < 100'000; ++i) deep = "@<item>" + std::move(deep);
    const ParsedReply reply = parse(write(member("any", deep)));
    CHECK(reply.calls.empty());
    REQUIRE(reply.malformed.size() == 1);
    CHECK(reply.malformed[0].error.find("nested deeper than 64") != std::string::npos);
}

TEST_CASE("element_parser: any mixture of tags, marks and bytes ends in calls that are JSON") {
    const std::string parts[] = {"@", "{", "}", "<tool_call>", "</tool_call>", "\n",
                                 "<invoke name=\"write\">", "<invoke name=\"shell\">", "</invoke>",
                                 "<path>", "</path>", "<tags>", "</tags>", "<item>", "</item>",
                                 "<any>", "</any>", "x", "12", "\xFF", "\xC3\xA9", "\"", "<", ">"};
    std::size_t calls = 0;
    for (unsigned seed = 0; seed < 20'000; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        std::string text = seed % 2 == 0 ? "" : "@<tool_call>@<invoke name=\"write\">";
        for (auto n = random() % 40; n > 0; --n) {
            if (random() % 2 == 0) text += '@';
            text += parts[random() % std::size(parts)];
        }
        const ParsedReply reply = parse(text, seed % 3 == 0);
        for (const auto& call : reply.calls) {
            CHECK(tools::parse_arguments(call.arguments).object);
            ++calls;
        }
        CHECK(reply.text.size() + reply.thinking.size() <= text.size() * 13);
    }
    CHECK(calls > 100);
}

TEST_SUITE_END();
