// The loop over a model that speaks MiniMax-M3's format: thinking, element calls, and what is kept.

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "model/error.h"
#include "tests/agent/agent_fixture.h"
#include "tests/support/m3_tokenizer.h"

using namespace skein::agent;
using skein::test::ScriptedRun;
namespace json = boost::json;
namespace model = skein::model;

namespace {

const std::string kNs = "]<]minimax[>[";

std::string element(const std::string& name, const std::string& value) {
    return kNs + "<" + name + ">" + value + kNs + "</" + name + ">";
}
std::string invoke(const std::string& name, const std::string& members) {
    return kNs + "<invoke name=\"" + name + "\">" + members + kNs + "</invoke>\n";
}
std::string block(const std::string& calls) {
    return kNs + "<tool_call>\n" + calls + kNs + "</tool_call>";
}
std::string echo(const std::string& text) { return invoke("echo", element("text", text)); }

struct M3Run : ScriptedRun {
    explicit M3Run(std::vector<ScriptedReply> replies) : ScriptedRun(std::move(replies)) {
        tokenizer = std::make_shared<const model::Tokenizer>(skein::test::m3_vocabulary());
        options.chat_format = "minimax-m3";
    }
    std::size_t count(std::string_view what) const {
        const std::string all = text();
        std::size_t n = 0;
        for (auto at = all.find(what); at != all.npos; at = all.find(what, at + 1)) ++n;
        return n;
    }
};

}  // namespace

TEST_SUITE("agent/native_calls") {
    TEST_CASE("native_calls: a call is run, its result answered, and all reasoning kept") {
        M3Run run({{"<mm:think>I must look.</mm:think>Looking." + block(echo("ONE") + echo("TWO"))},
                   {"</mm:think>It said ONE."}});
        const RunResult result = run.run("What does it say?");
        CHECK(result.exit_status == ExitStatus::finished);
        CHECK(result.final_message == "It said ONE.");
        CHECK(run.fakes.calls == std::vector<std::string>{"echo", "echo"});
        const std::string log = run.text();
        CHECK(log.find("]~b]ai\n<mm:think>I must look.</mm:think>Looking." + kNs + "<tool_call>") !=
              std::string::npos);
        CHECK(log.find("[e~[\n]~b]tool\n<response>ONE</response>\n<response>TWO") !=
              std::string::npos);
        CHECK(log.ends_with("]~b]ai\n</mm:think>It said ONE.[e~[\n"));
        CHECK(run.count("]~!b[") == 1);
    }

    TEST_CASE("native_calls: C07, C08, results stand in the order of the calls, each with its id") {
        M3Run run({{block(echo("ONE") + echo("TWO"))}, {block(echo("THREE"))}, {"done"}});
        run.run();
        const auto& calls = run.recorder.tool_calls;
        REQUIRE(calls.size() == 3);
        std::vector<std::string> shown, ids;
        for (const ToolCallRecord& call : calls) {
            shown.push_back(call.shown);
            ids.push_back(call.call.id);
            CHECK(call.ended_ms >= call.began_ms);
        }
        CHECK(shown[0].starts_with("ONE"));
        CHECK(shown[1].starts_with("TWO"));
        CHECK(shown[2].starts_with("THREE"));
        CHECK(ids == std::vector<std::string>{"s0c0", "s0c1", "s1c0"});
        const std::string log = run.text();
        CHECK(log.find("<response>ONE") < log.find("<response>TWO"));
    }

    TEST_CASE("native_calls: C01, C02, a broken call is answered in words, its sibling runs") {
        M3Run run({{block(invoke("write", element("path", "p") + kNs + "<content>x") + echo("hi"))},
                   {block(invoke("echo", element("text", "again")))},
                   {"done"}});
        CHECK(run.run().exit_status == ExitStatus::finished);
        CHECK(run.fakes.files.empty());
        CHECK(run.fakes.calls == std::vector<std::string>{"echo", "echo"});
        const std::string log = run.text();
        CHECK(log.find("<response>Not run: this call cannot be read: <content> is not closed by "
                       "the namespace token and </content>, at byte ") != std::string::npos);
        CHECK(log.find("with the namespace token in front of every tag.</response>") !=
              std::string::npos);
        // What stands in a result is text: the ids of the tags are those of the replies alone.
        CHECK(log.find("\n<response>hi") != std::string::npos);
    }

    TEST_CASE("native_calls: C03, a call cut by the limit is not run, whatever was complete") {
        const std::string content(200, 'x');
        const std::string whole =
            block(echo("first") + invoke("write", element("path", "p") +
                                                      element("content", content)));
        const model::Tokenizer tokenizer(skein::test::m3_vocabulary());
        const int tokens = static_cast<int>(tokenizer.encode_with_specials(whole).size());
        for (const int limit : {tokens / 4, tokens / 2, tokens - 1}) {
            CAPTURE(limit);
            M3Run run({{whole}, {"done"}});
            run.config.limits.reply_tokens = limit;
            run.run();
            CHECK(run.fakes.calls.empty());
            CHECK(run.text().find("cut off by the limit") != std::string::npos);
        }
    }

    TEST_CASE("native_calls: C06, a reply that ends in its thinking is answered with a notice") {
        M3Run run({{"I think " + block(echo("x"))}, {"so</mm:think>done"}});
        run.config.thinking.mode = ThinkingMode::enabled;
        CHECK(run.run().final_message == "done");
        CHECK(run.fakes.calls.empty());
        CHECK(run.text().find("Close the thinking part first") != std::string::npos);
        CHECK(run.count("]~b]ai\n<mm:think>") == 2);
        CHECK(std::ranges::any_of(run.recorder.events, [](const auto& event) {
            return event.kind == "reply_refused";
        }));
    }

    TEST_CASE("native_calls: the mode of thinking is in the prompt and in the record") {
        for (const ThinkingMode mode :
             {ThinkingMode::adaptive, ThinkingMode::enabled, ThinkingMode::disabled}) {
            M3Run run({{mode == ThinkingMode::enabled ? "so</mm:think>yes" : "yes"}});
            run.config.thinking = {mode, 64};
            CHECK(run.run().final_message == "yes");
            const std::string name(to_string(mode));
            CHECK(run.text().find("Current thinking mode: " + name) != std::string::npos);
            REQUIRE(run.recorder.trajectories.size() == 1);
            const json::value config = json::parse(run.recorder.trajectories[0].config_json);
            CHECK(config.at("thinking").at("mode") == json::value(name));
            CHECK(config.at("thinking").at("budget_tokens") == 64);
        }
    }

    TEST_CASE("native_calls: thinking that a format cannot have is refused with the agent") {
        ScriptedRun run({{"x"}});
        run.config.thinking.mode = ThinkingMode::enabled;
        CHECK_THROWS_WITH_AS(run.start(), "chat format 'chatml' has no thinking mode 'enabled'",
                             model::Error);
        run.config.thinking = {ThinkingMode::disabled, 10};
        CHECK_THROWS_WITH_AS(run.start(), doctest::Contains("a budget of 10 thinking tokens"),
                             model::Error);
        run.config.thinking = {ThinkingMode::disabled, 0};
        CHECK(run.run().final_message == "x");
    }

    TEST_CASE("native_calls: J04, a split no tokenizer makes stays in the log as it was sampled") {
        // "the" letter by letter, although the vocabulary has longer tokens.
        const model::Tokenizer tokenizer(skein::test::m3_vocabulary());
        Tokens reply;
        for (const char c : std::string("the end")) {
            const Tokens one = tokenizer.encode(std::string(1, c));
            reply.insert(reply.end(), one.begin(), one.end());
        }
        REQUIRE(reply != tokenizer.encode("the end"));
        reply.push_back(*tokenizer.eos());
        M3Run run({{.tokens = reply}, {"ok"}});
        run.start();
        run.agent->say("one");
        skein::test::run_now(run.agent->step());
        run.agent->say("two");
        skein::test::run_now(run.agent->step());
        const auto log = run.agent->log().tokens();
        CHECK(std::search(log.begin(), log.end(), reply.begin(), reply.end()) != log.end());
        CHECK(run.recorder.steps[0].reply.tokens == reply);
    }

    TEST_CASE("native_calls: bytes without a token are counted in an event, not lost in silence") {
        model::Vocabulary v = skein::test::byte_vocabulary();
        v.types[0xF5] = model::TokenType::unused;
        v.types['~'] = model::TokenType::unused;
        ScriptedRun run({{skein::test::call_text("echo", R"({"text": "a~~b"})")}, {"done"}});
        run.tokenizer = std::make_shared<const model::Tokenizer>(std::move(v));
        run.run("say \xF5\x80\x80\x80~");
        std::vector<std::pair<std::string, std::int64_t>> dropped;
        for (const auto& event : run.recorder.events) {
            if (event.kind != "dropped_bytes") continue;
            const json::value facts = json::parse(event.json);
            dropped.emplace_back(facts.at("where").as_string(), facts.at("bytes").to_number<int>());
        }
        CHECK(dropped == std::vector<std::pair<std::string, std::int64_t>>{{"user", 2}});
    }
}
