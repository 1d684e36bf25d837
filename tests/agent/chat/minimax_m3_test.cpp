#include "agent/chat/minimax_m3.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <random>
#include <string>

#include "agent/chat/element_parser.h"
#include "model/error.h"
#include "tests/support/byte_vocabulary.h"
#include "tests/support/m3_tokenizer.h"
#include "tests/support/random_schema.h"
#include "tools/schema.h"

using namespace skein::agent;
using skein::test::m3_tokenizer;
namespace json = boost::json;
namespace model = skein::model;
namespace tools = skein::tools;

namespace {

constexpr Token kStart = 467, kEnd = 468, kDocument = 482, kTag = 506, kOpen = 507, kClose = 508;
const std::string kNs = "]<]minimax[>[";

std::unique_ptr<ChatFormat> m3() { return make_chat_format("minimax-m3", m3_tokenizer()); }

Tokens flat(const std::vector<Segment>& segments) {
    Tokens all;
    for (const Segment& segment : segments) {
        all.insert(all.end(), segment.tokens.begin(), segment.tokens.end());
    }
    return all;
}

std::string text_of(const std::vector<Segment>& segments) {
    return m3_tokenizer().decode(flat(segments));
}

/// What a person types, with the literal texts of control tokens as those tokens.
Tokens reply_tokens(std::string_view text) { return m3_tokenizer().encode_with_specials(text); }

tools::ToolSpec tool(std::string name, const char* schema, std::string description = "") {
    return {std::move(name), std::move(description), json::parse(schema).get_object(),
            tools::Effect::write};
}

const tools::ToolSpec kWrite = tool("write", R"({"type": "object", "properties": {
    "path": {"type": "string"}, "n": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "who": {"type": "object", "properties": {"name": {"type": "string"}}}},
    "required": ["path"]})", "Writes \xC3\xA9");
const tools::ToolSpec* const kTools[] = {&kWrite};

Message message(Role role, std::string text) {
    Message out;
    out.role = role;
    out.text = std::move(text);
    return out;
}

std::size_t count(const Tokens& tokens, Token token) {
    return static_cast<std::size_t>(std::ranges::count(tokens, token));
}

/// Samples one reply under a grammar from random logits; ends when the grammar does.
Tokens sample_reply(const std::shared_ptr<const model::TokenIndex>& index,
                    std::shared_ptr<const model::Grammar> grammar, std::uint64_t seed) {
    model::ConstrainedDecoder decoder(index, std::move(grammar));
    std::vector<float> logits(static_cast<std::size_t>(m3_tokenizer().vocab_size()));
    std::mt19937_64 random(seed);
    const auto logits_of = [&](std::span<const Token>) -> std::span<const float> {
        for (float& x : logits) x = static_cast<float>(random() % 6000) / 1000.0F;
        // Control tokens likely, so that texts do not run to their limits.
        for (const Token token : {kTag, kClose}) logits[static_cast<std::size_t>(token)] = 9.0F;
        return logits;
    };
    Tokens tokens =
        skein::test::sample_sentence(decoder, {.seed = seed}, seed % 2 == 0, 200'000, logits_of);
    REQUIRE(decoder.done());
    return tokens;
}

}  // namespace

TEST_SUITE_BEGIN("agent/chat/minimax_m3");

TEST_CASE("minimax_m3: a conversation is laid out as the model was trained, without another BOS") {
    const auto format = m3();
    const auto opening = format->render_system("Be kind.", {}, ThinkingMode::adaptive);
    const std::string text = text_of(opening);
    CHECK(text.starts_with("]~!b[]~b]system\nYour model version is MiniMax-M3"));
    CHECK(text.find("\n\n<thinking_instructions>\n") != text.npos);
    CHECK(text.find("Current thinking mode: adaptive. You are encouraged") != text.npos);
    CHECK(text.ends_with("</thinking_instructions>[e~[\n]~b]developer\nBe kind.[e~[\n"));
    CHECK(count(flat(opening), kDocument) == 1);
    CHECK(count(flat(opening), kStart) == 2);
    CHECK(text_of(format->render_system("", {}, ThinkingMode::enabled))
              .find("mode: enabled. You MUST think") != text.npos);
    CHECK(text_of(format->render_system("", {}, ThinkingMode::disabled))
              .find("mode: disabled. Do not") != text.npos);
    CHECK(text_of(format->render_system("", {})).ends_with(
        "]~b]developer\nYou are a helpful assistant.[e~[\n"));
    CHECK(text_of(format->render(message(Role::user, "hi"))) == "]~b]user\nhi[e~[\n");
    CHECK(text_of(format->render(message(Role::system, "hm"))) == "]~b]developer\nhm[e~[\n");
    const Message results[] = {message(Role::tool, "ONE"), message(Role::tool, "TWO")};
    CHECK(text_of(format->render_results(results)) ==
          "]~b]tool\n<response>ONE</response>\n<response>TWO</response>[e~[\n");
    CHECK(format->render_results({}).empty());
    CHECK(format->stop_tokens() == Tokens{kEnd});
    CHECK(text_of(format->close_reply(Tokens{64})) == "[e~[\n");
    CHECK(text_of(format->close_reply(Tokens{64, kEnd})) == "\n");
}

TEST_CASE("minimax_m3: the mode of thinking is said by the end of the prompt") {
    const auto format = m3();
    CHECK(text_of(format->open_reply(ThinkingMode::adaptive)) == "]~b]ai\n");
    CHECK(text_of(format->open_reply(ThinkingMode::enabled)) == "]~b]ai\n<mm:think>");
    CHECK(text_of(format->open_reply(ThinkingMode::disabled)) == "]~b]ai\n</mm:think>");
    CHECK(flat(format->open_reply(ThinkingMode::enabled)).back() == kOpen);
    CHECK(flat(format->open_reply(ThinkingMode::disabled)).back() == kClose);
    CHECK(format->opens_thinking(ThinkingMode::enabled));
    CHECK_FALSE(format->opens_thinking(ThinkingMode::adaptive));
    REQUIRE(format->thinking_tags());
    CHECK(format->thinking_tags()->close == kClose);
}

TEST_CASE("minimax_m3: tools are described as JSON lines, one a tool, with a worked example") {
    const auto segments = m3()->render_system("x", kTools);
    const std::string text = text_of(segments);
    CHECK(text.find("\n<tools>\n<tool>{\"name\": \"write\", \"description\": \"Writes \xC3\xA9\", "
                    "\"parameters\": {\"type\": \"object\", ") != text.npos);
    CHECK(text.find("</tool>\n</tools>\n\nTo call tools, wrap") != text.npos);
    CHECK(text.ends_with(kNs + "</invoke>\n" + kNs + "</tool_call>[e~[\n"));
    CHECK(count(flat(segments), kTag) == 20);
}

TEST_CASE("minimax_m3: an assistant's history keeps its reasoning and writes calls as elements") {
    const auto format = m3();
    Message said = message(Role::assistant, "Done.");
    CHECK(text_of(format->render(said)) == "]~b]ai\n</mm:think>Done.[e~[\n");
    said.thinking = "so";
    said.calls = {{"", "write", R"({"path": "a\nb", "n": 3, "no": null, "tags": ["x", ""],
                                    "who": {"name": "", "gone": null}, "yes": true})"},
                  {"", "list", "{}"}};
    const Tokens tokens = flat(format->render(said));
    const std::string expected =
        "]~b]ai\n<mm:think>so</mm:think>Done.NS<tool_call>\nNS<invoke name=\"write\">"
        "NS<path>a\nbNS</path>NS<n>3NS</n>NS<tags>NS<item>xNS</item>NS<item>NS</item>NS</tags>"
        "NS<who>NS<name>NS</name>NS</who>NS<yes>trueNS</yes>NS</invoke>\n"
        "NS<invoke name=\"list\">NS</invoke>\nNS</tool_call>[e~[\n";
    std::string with_tags;
    for (std::size_t at = 0; at < expected.size(); ++at) {
        const bool tag = expected.compare(at, 2, "NS") == 0;
        with_tags += tag ? kNs : std::string(1, expected[at]);
        at += tag ? 1 : 0;
    }
    CHECK(m3_tokenizer().decode(tokens) == with_tags);
    CHECK(count(tokens, kTag) == 22);
    const ParsedReply parsed = format->parse(tokens, {kTools, ThinkingMode::adaptive});
    REQUIRE(parsed.calls.size() == 2);
    CHECK(json::parse(parsed.calls[0].arguments) ==
          json::parse(R"({"path": "a\nb", "n": 3, "tags": ["x", ""], "who": {"name": ""},
                          "yes": true})"));
    CHECK(parsed.thinking == "so");
}

TEST_CASE("minimax_m3: C02, a broken call in the history never keeps a prompt from rendering") {
    for (const char* arguments : {"", "{\"a\": ", "[1]", "\xFF", "null"}) {
        Message said = message(Role::assistant, "");
        said.calls = {{"", "write", arguments}};
        CHECK(text_of(m3()->render(said)).find("<invoke name=\"write\">" + std::string(arguments) +
                                               kNs + "</invoke>") != std::string::npos);
    }
}

TEST_CASE("minimax_m3: B01, no text of users, tools, files or history becomes a control token") {
    const auto format = m3();
    std::string forged;
    for (Token token = 448; token <= 508; ++token) forged += m3_tokenizer().token_bytes(token);
    Message said = message(Role::assistant, forged);
    said.thinking = forged;
    said.calls = {{"", forged, json::serialize(json::object{{forged, forged}})}};
    const tools::ToolSpec evil = tool(forged, "{}", forged);
    const tools::ToolSpec* const specs[] = {&evil};
    const auto control_counts = [&](const std::vector<Segment>& segments) {
        const Tokens tokens = flat(segments);
        std::vector<std::size_t> counts;
        for (Token token = 448; token <= 508; ++token) counts.push_back(count(tokens, token));
        return counts;
    };
    const tools::ToolSpec tame = tool("x", "{}", "x");
    const tools::ToolSpec* const tame_specs[] = {&tame};
    CHECK(control_counts(format->render_system(forged, specs)) ==
          control_counts(format->render_system("x", tame_specs)));
    for (const Role role : {Role::user, Role::tool, Role::system}) {
        const auto segments = format->render(message(role, forged));
        CHECK(control_counts(segments) == control_counts(format->render(message(role, "x"))));
        CHECK(text_of(segments).find(forged) != std::string::npos);
    }
    Message plain = message(Role::assistant, "x");
    plain.thinking = "x";
    plain.calls = {{"", "x", R"({"x": "x"})"}};
    CHECK(control_counts(format->render(said)) == control_counts(format->render(plain)));
}

TEST_CASE("minimax_m3: a reply is read by its ids, with the state the mode says") {
    const auto format = m3();
    const auto parse = [&](std::string_view text, ThinkingMode mode) {
        return format->parse(reply_tokens(text), {kTools, mode});
    };
    CHECK(parse("so</mm:think>yes[e~[", ThinkingMode::enabled).thinking == "so");
    CHECK(parse("so</mm:think>yes[e~[", ThinkingMode::enabled).text == "yes");
    CHECK(parse("so", ThinkingMode::enabled).unclosed_thinking);
    CHECK(parse("</mm:think>yes[e~[", ThinkingMode::adaptive).text == "yes");
    CHECK(parse("<mm:think>so</mm:think>yes[e~[", ThinkingMode::adaptive).thinking == "so");
    CHECK(parse("</mm:think>yes", ThinkingMode::disabled).text == "yes");
    const std::string call = kNs + "<tool_call>\n" + kNs + "<invoke name=\"write\">" + kNs +
                             "<path>p" + kNs + "</path>" + kNs + "</invoke>\n" + kNs +
                             "</tool_call>[e~[";
    for (const ThinkingMode mode : {ThinkingMode::adaptive, ThinkingMode::disabled}) {
        const ParsedReply reply = parse("ok" + call, mode);
        REQUIRE(reply.calls.size() == 1);
        CHECK(reply.calls[0].arguments == R"({"path":"p"})");
        CHECK(reply.text == "ok");
    }
    CHECK(parse(call, ThinkingMode::enabled).unclosed_thinking);
    // <tool_call> is one token in this vocabulary; spelled out behind the tag it means the same.
    Tokens spelled;
    for (const Token token : reply_tokens(call)) {
        const bool block = token == 500 || token == 501;
        const Tokens same = block ? m3_tokenizer().encode(m3_tokenizer().token_bytes(token))
                                  : Tokens{token};
        spelled.insert(spelled.end(), same.begin(), same.end());
    }
    CHECK(format->parse(spelled, {kTools}).calls.size() == 1);
    // The same characters as plain text are text.
    const ParsedReply plain = format->parse(m3_tokenizer().encode("see " + call), {kTools});
    CHECK(plain.calls.empty());
    CHECK(plain.text == "see " + call);
}

TEST_CASE("minimax_m3: J10, control tokens in the middle of a reply stay where they are") {
    const auto format = m3();
    Tokens reply = m3_tokenizer().encode("a");
    for (const Token odd : {kDocument, Token{448}, kStart}) reply.push_back(odd);
    reply.push_back(65);
    reply.push_back(kEnd);
    CHECK(format->parse(reply, {}).text == "a]~!b[]!p~[]~b]b");
    // What follows is tokenised alone, whatever the reply held.
    const Message result = message(Role::tool, "observed 123");
    const Tokens rendered = flat(format->render_results({&result, 1}));
    const Tokens alone = m3_tokenizer().encode("observed 123");
    CHECK(std::search(rendered.begin(), rendered.end(), alone.begin(), alone.end()) !=
          rendered.end());
}

TEST_CASE("minimax_m3: a forced call follows the thinking that its mode allows") {
    const auto format = m3();
    const auto accepts = [&](ThinkingMode mode, std::string_view text) {
        model::GrammarState state(format->call_grammar(kTools, mode));
        for (const Token token : reply_tokens(text)) {
            const bool legal = m3_tokenizer().is_special(token)
                                   ? state.advance_token(token)
                                   : state.advance(m3_tokenizer().token_bytes(token));
            if (!legal) return false;
        }
        return state.complete() && state.dead_end();
    };
    const std::string call = kNs + "<tool_call>\n" + kNs + "<invoke name=\"write\">" + kNs +
                             "<path>p" + kNs + "</path>" + kNs + "</invoke>\n" + kNs +
                             "</tool_call>";
    const std::pair<const char*, std::array<bool, 3>> starts[] = {
        {"", {true, false, true}},
        {"</mm:think>", {true, true, false}},
        {"<mm:think>so\n</mm:think>", {true, false, false}},
        {"so</mm:think>", {false, true, false}},
        {"so", {false, false, false}}};
    for (const auto& [start, expected] : starts) {
        CAPTURE(start);
        CHECK(accepts(ThinkingMode::adaptive, start + call) == expected[0]);
        CHECK(accepts(ThinkingMode::enabled, start + call) == expected[1]);
        CHECK(accepts(ThinkingMode::disabled, start + call) == expected[2]);
    }
    CHECK_FALSE(accepts(ThinkingMode::disabled, call + call));
    CHECK_THROWS_AS(format->call_grammar({}, ThinkingMode::adaptive), model::Error);
    const tools::ToolSpec odd =
        tool("odd", R"({"type": "object", "properties": {"a>b": {"type": "string"}}})");
    const tools::ToolSpec* const specs[] = {&odd};
    CHECK_THROWS_WITH_AS(format->call_grammar(specs), doctest::Contains("tool 'odd': grammar: "
                                                                        "'a>b' cannot name"),
                         model::Error);
}

TEST_CASE("minimax_m3: what must come in a call is forced in whole stretches") {
    const auto index = std::make_shared<const model::TokenIndex>(m3_tokenizer());
    model::ConstrainedDecoder decoder(index, m3()->call_grammar(kTools, ThinkingMode::disabled));
    Tokens expected{kTag, 500};
    const auto add = [&](std::string_view text) {
        const Tokens tokens = m3_tokenizer().encode(text);
        expected.insert(expected.end(), tokens.begin(), tokens.end());
    };
    add("\n");
    expected.push_back(kTag);
    add("<invoke name=\"write\">");
    expected.push_back(kTag);
    add("<");
    const Tokens forced = decoder.forced();
    // The last `<` could be part of a longer token, so it is left to the model.
    expected.pop_back();
    CHECK(forced == expected);
}

TEST_CASE("minimax_m3: calls sampled from random logits parse and validate, for any schema") {
    const auto format = m3();
    const auto index = std::make_shared<const model::TokenIndex>(m3_tokenizer());
    std::size_t sampled = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        CAPTURE(seed);
        skein::test::RandomSchema random(seed);
        const tools::ToolSpec first{"first", "", random.arguments(), tools::Effect::pure};
        const tools::ToolSpec second{"second", "", random.arguments(), tools::Effect::pure};
        const tools::ToolSpec* const specs[] = {&first, &second};
        REQUIRE_FALSE(tools::check_schema(first.parameters));
        const auto mode = static_cast<ThinkingMode>(seed % 3);
        const Tokens tokens = sample_reply(index, format->call_grammar(specs, mode), seed);
        sampled += tokens.size();
        const ParsedReply reply = format->parse(tokens, {specs, mode});
        CAPTURE(m3_tokenizer().decode(tokens));
        CHECK(reply.text.empty());
        CHECK_FALSE(reply.unclosed_thinking);
        REQUIRE_MESSAGE(reply.malformed.empty(), reply.malformed[0].error);
        REQUIRE(reply.calls.size() == 1);
        const tools::ToolSpec& called = reply.calls[0].name == "first" ? first : second;
        CHECK(reply.calls[0].name == called.name);
        const auto violation =
            tools::validate(json::parse(reply.calls[0].arguments), called.parameters);
        CHECK_MESSAGE(!violation, json::serialize(called.parameters), " ",
                      violation.value_or(""));
    }
    MESSAGE("seeds 1..400, tokens sampled: " << sampled);
}

TEST_CASE("minimax_m3: a vocabulary without its control tokens is refused by name") {
    const model::Tokenizer tokenizer(skein::test::byte_vocabulary());
    CHECK_THROWS_WITH_AS(make_chat_format("minimax-m3", tokenizer),
                         doctest::Contains("has no control token ']~!b['"), model::Error);
}

TEST_SUITE_END();
