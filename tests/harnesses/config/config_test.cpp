#include "harnesses/config/config.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <filesystem>

#include "tests/support/temporary_directory.h"

using namespace skein;
using namespace skein::harnesses;

namespace {

constexpr const char* kTask = "task: do it\n";

HarnessConfig parse(const std::string& text) {
    return parse_config(text, "f.yaml", "/base");
}

std::string refusal(const std::string& text) {
    try {
        parse(text);
    } catch (const ConfigError& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != text.npos;
}

// One field of kernel_opt, limits, model or sandbox at a time.
std::string kernel(const std::string& line) {
    return "kernel_opt:\n  " + line + "\n";
}
std::string limit(const std::string& line) {
    return kTask + ("agents:\n  root:\n    limits: {" + line + "}\n");
}

constexpr const char* kWhole = R"(
version: 1
models:
  main: {path: models/a.gguf, threads: 2, max_context: 4096, temperature: 1.0, top_k: 40,
         top_p: 0.95, min_p: 0.05, seed: 7, thinking: enabled, thinking_tokens: 512,
         chat_format: minimax-m3, attention: retrofit, kv: int8}
agents:
  root:
    model: main
    description: one line
    instruction: |
      First line.
      	a tab, "quotes", ${HOME} $5 $$ {x}
    toolsets:
      - {type: shell, timeout: 30s, max_timeout: 1h30m}
      - type: files
    limits: {turns: 500, tool_calls: 5000, tokens: 900000, output_tokens: 200000,
             reply_tokens: 100, time: 8h, tool_output_tokens: 1000}
sandbox: {require: landlock, network: none, memory: 64M, pids: 512}
kernel_opt:
  tasks: [sgemm, softmax]
  proposer: scripted
  evaluations: 30
  model_share: 0.5
  random_control: false
  seed: 3
  pairs: 11
  final_pairs: 31
  finalists: 2
  time: 9m
  script: ["null", "two\nlines"]
run_dir: ../runs
)";

}  // namespace

TEST_SUITE("harnesses/config") {
    TEST_CASE("every key of the vocabulary is read") {
        const HarnessConfig config = parse(kWhole);
        const ModelSettings& model = config.models.at("main");
        CHECK(model.path == "/base/models/a.gguf");
        CHECK(model.threads == 2);
        CHECK(model.max_context == 4096);
        CHECK(model.temperature == 1.0);
        CHECK(model.top_k == 40);
        CHECK(model.top_p == 0.95);
        CHECK(model.min_p == 0.05);
        CHECK(model.seed == 7);
        CHECK(model.thinking == "enabled");
        CHECK(model.thinking_tokens == 512);
        CHECK(model.chat_format == "minimax-m3");
        CHECK(model.attention == "retrofit");
        CHECK(model.kv == "int8");
        const AgentSettings& agent = config.agents.at("root");
        CHECK(agent.instruction == "First line.\n\ta tab, \"quotes\", ${HOME} $5 $$ {x}\n");
        REQUIRE(agent.toolsets.size() == 2);
        CHECK(agent.toolsets[0].max_timeout == std::chrono::minutes(90));
        CHECK(agent.toolsets[1].timeout == std::chrono::seconds(120));
        CHECK(agent.limits.time == std::chrono::hours(8));
        CHECK(agent.limits.tool_output_tokens == 1000);
        CHECK(config.sandbox.memory_bytes == 64ULL << 20);
        REQUIRE(config.kernel_opt);
        CHECK(config.kernel_opt->tasks == std::vector<std::string>{"sgemm", "softmax"});
        CHECK(config.kernel_opt->time == std::chrono::minutes(9));
        CHECK(config.kernel_opt->script[0] == "null");
        CHECK(config.run_dir == "/runs");
        CHECK(config.base == "/base");
    }

    TEST_CASE("defaults hold for what is left out, and all tasks may be named by one word") {
        const HarnessConfig config = parse("kernel_opt: {tasks: all}\n");
        CHECK(config.kernel_opt->tasks.empty());
        CHECK(config.kernel_opt->evaluations == 24);
        CHECK(config.kernel_opt->model_share == 0.25);
        CHECK(config.kernel_opt->random_control);
        CHECK(config.sandbox.require == "full");
        CHECK(parse(std::string("models: {main: {}}\n") + kTask).models.at("main").path ==
              "default");
    }

    TEST_CASE("H02: what is shown reads back to the same, with every default in it") {
        const HarnessConfig config = parse(kWhole);
        const std::string shown = show_config(config);
        CHECK(show_config(parse_config(shown, "shown", "/elsewhere")) == shown);
        CHECK(contains(shown, "path: \"/base/models/a.gguf\""));
        CHECK(contains(show_config(parse(kTask)), "require: \"full\""));
        HarnessConfig odd = parse(kTask);
        odd.task = "null";
        odd.models["no"].temperature = 0.1;
        odd.models["1.20"].seed = 9223372036854775807ULL;
        odd.agents["~"].model = "no";
        odd.agents["~"].description = " # x: \"y\" \x01";
        const HarnessConfig again = parse_config(show_config(odd), "shown", "");
        CHECK(again.task == "null");
        CHECK(again.models.at("no").temperature == 0.1);
        CHECK(again.models.at("1.20").seed == 9223372036854775807ULL);
        CHECK(again.agents.at("~").description == odd.agents["~"].description);
    }

    TEST_CASE("H08: unknown keys are refused with their place and the word that was meant") {
        try {
            parse("kernel_opt:\n  evaluatons: 3\n");
            FAIL("accepted");
        } catch (const ConfigError& error) {
            CHECK(std::string(error.what()) ==
                  "f.yaml:2:3: unknown key 'evaluatons' in kernel_opt (known: tasks, proposer, "
                  "evaluations, "
                  "model_share, random_control, seed, pairs, final_pairs, finalists, time, "
                  "script); did you mean "
                  "'evaluations'?");
            CHECK(error.line == 2);
            CHECK(error.column == 3);
            CHECK(error.suggestion == "evaluations");
            CHECK(error.file == "f.yaml");
        }
        CHECK(contains(refusal(limit("max_turn: 3")), "did you mean 'turns'?"));
        CHECK(contains(refusal(limit("timeout_sec: 5")), "did you mean 'time'?"));
        CHECK(contains(refusal(limit("budget_token: 100")), "did you mean 'tokens'?"));
        CHECK(contains(refusal(std::string(kTask) + "zzz: 1\n"),
                       "unknown key 'zzz' in the top level"));
    }

    TEST_CASE("H07: a key at the wrong level is told where it belongs") {
        CHECK(
            contains(refusal(std::string(kTask) + "toolsets: []\n"), "it belongs in agents.NAME"));
        CHECK(contains(refusal(std::string(kTask) + "agents: {root: {sandbox: {}}}\n"),
                       "belongs in the top level"));
        CHECK(contains(refusal(std::string(kTask) + "temperature: 1\n"), "belongs in models.NAME"));
    }

    TEST_CASE("several errors are reported at once, in order") {
        const std::string text =
            refusal("version: 2\nsandbox: {pids: x}\nkernel_opt: {pairs: 1, tasks: []}\n");
        CHECK(text ==
              "f.yaml:1:10: expected an integer from 1 to 1, got 2\n"
              "f.yaml:2:17: expected an integer in decimal digits, got \"x\"\n"
              "f.yaml:3:21: expected an integer from 3 to 10000, got 1\n"
              "f.yaml:3:31: an empty list; write all to take every one");
    }

    TEST_CASE("H02: numbers take only their documented forms") {
        for (const char* bad : {"7e10", "1.20", "0123", "12:30", "0x1F", "1_000", "+5", "-1", "''",
                                "five", "'5'", "[5]", "", "99999999999999999999"}) {
            CAPTURE(bad);
            CHECK(refusal(kernel(std::string("evaluations: ") + bad)) != "");
        }
        for (const char* bad : {"1e-1", ".", "1.5", "-0.5", "nan", "inf", "'0.5'", "0.5.0"}) {
            CAPTURE(bad);
            CHECK(refusal(kernel(std::string("model_share: ") + bad)) != "");
        }
        CHECK(parse(kernel("model_share: 0.125")).kernel_opt->model_share == 0.125);
        for (const char* bad : {"yes", "on", "1", "'true'", "True", "~"}) {
            CAPTURE(bad);
            CHECK(contains(refusal(kernel(std::string("random_control: ") + bad)),
                           "expected true or false"));
        }
    }

    TEST_CASE("durations take units or plain seconds") {
        using namespace std::chrono_literals;
        const auto time = [](const std::string& text) {
            return parse(kernel("time: " + text)).kernel_opt->time;
        };
        CHECK(time("120s") == 120s);
        CHECK(time("30m") == 30min);
        CHECK(time("8h") == 8h);
        CHECK(time("1h30m") == 90min);
        CHECK(time("500ms") == 500ms);
        CHECK(time("90") == 90s);
        CHECK(time("2.5") == 2500ms);
        CHECK(time("\"1.5h\"") == 90min);
        CHECK(time("0") == 0s);
        for (const char* bad :
             {"1h30", "5 m", "-5s", "5x", "s", "''", "1e3", "99999999d", "12:30"}) {
            CAPTURE(bad);
            CHECK(contains(refusal(kernel(std::string("time: ") + bad)), "expected a duration"));
        }
    }

    TEST_CASE("sizes take binary units or plain bytes") {
        const auto memory = [](const std::string& text) {
            return parse(kTask + ("sandbox: {memory: " + text + "}\n")).sandbox.memory_bytes;
        };
        CHECK(memory("64M") == 64ULL << 20);
        CHECK(memory("4GiB") == 4ULL << 30);
        CHECK(memory("1.5G") == 3ULL << 29);
        CHECK(memory("512KB") == 512ULL << 10);
        CHECK(memory("1000") == 1000);
        for (const char* bad : {"64 M", "64X", "M", "-1", "1e9", "64MM", "0.1", "99999999T"}) {
            CAPTURE(bad);
            CHECK(contains(refusal(kTask + (std::string("sandbox: {memory: ") + bad + "}\n")),
                           "expected a size"));
        }
    }

    TEST_CASE("H01: words stay text where text is expected, null asks for quotes") {
        const HarnessConfig config =
            parse("task: no\nmodels: {n: {}}\nagents: {no: {model: n, description: on}}\n");
        CHECK(config.task == "no");
        CHECK(config.agents.at("no").description == "on");
        CHECK(contains(refusal("task: ~\n"),
                       "f.yaml:1:7: expected text, got nothing; write null and ~ in quotes"));
        CHECK(contains(refusal(std::string(kTask) + "models: {null: {}}\n"), "put it in quotes"));
        CHECK(parse("task: \"null\"\n").task == "null");
    }

    TEST_CASE(
        "H13: names and paths with white space at their ends are refused, prompts are kept "
        "exactly") {
        CHECK(
            contains(refusal(std::string(kTask) + "models:\n  main:\n    path: >\n      a.gguf\n"),
                     "white space at its ends"));
        CHECK(parse(std::string(kTask) + "models:\n  main:\n    path: >-\n      a.gguf\n")
                  .models.at("main")
                  .path == "/base/a.gguf");
        CHECK(
            contains(refusal(std::string(kTask) + "models: {\" main\": {}}\n"), "expected a name"));
        CHECK(contains(refusal(std::string(kTask) + "models: {\"\": {}}\n"), "empty text"));
        CHECK(parse("task: |+\n  x\n\n").task == "x\n\n");
    }

    TEST_CASE("wrong shapes and choices are named") {
        CHECK(contains(refusal("[1]\n"), "the top level: expected a mapping, got a list"));
        CHECK(contains(refusal(std::string(kTask) + "agents: [root]\n"),
                       "expected a mapping from names, got a list"));
        CHECK(contains(refusal(std::string(kTask) + "agents: {root: {toolsets: shell}}\n"),
                       "expected a list, got text"));
        CHECK(contains(refusal(std::string(kTask) + "agents: {root: {toolsets: [{timeout: 3}]}}\n"),
                       "the key 'type' is missing"));
        CHECK(contains(refusal(kernel("proposer: serch")), "did you mean 'search'?"));
        CHECK(contains(refusal(kTask + std::string("sandbox: {network: host}\n")),
                       "expected one of none"));
        CHECK(contains(refusal("task: {a: b}\n"), "expected text, got a mapping"));
    }

    TEST_CASE(
        "rules across sections: models that exist, a script for the scripted, one thing to do") {
        CHECK(contains(
            refusal(std::string(kTask) + "models: {main: {}}\nagents: {root: {model: mian}}\n"),
            "agents.root: no model is called 'mian'; did you mean 'main'?"));
        CHECK(contains(refusal(std::string(kTask) + "agents: {root: {model: big}}\n"),
                       "models is empty"));
        CHECK(contains(refusal(kernel("proposer: scripted")), "needs a script"));
        CHECK(contains(refusal(kernel("pairs: 5") + kTask), "plain agent run"));
        CHECK(contains(refusal("version: 1\n"), "nothing to do"));
        CHECK(contains(refusal(std::string(kTask) +
                               "agents: {root: {toolsets: [{type: shell, timeout: 9h}]}}\n"),
                       "larger than max_timeout"));
        CHECK(
            contains(refusal(std::string(kTask) + "agents: {root: {prompt: a, instruction: b}}\n"),
                     "mean the same"));
        CHECK(parse(std::string(kTask) + "agents: {root: {system_prompt: a}}\n")
                  .agents.at("root")
                  .instruction == "a");
    }

    TEST_CASE("files: missing, too large, a directory, and relative to their own folder") {
        const test::TemporaryDirectory directory;
        CHECK_THROWS_AS(load_config(directory / "absent.yaml"), ConfigError);
        CHECK_THROWS_AS(load_config(directory.path()), ConfigError);
        test::put_file(directory / "large.yaml", std::string(2 << 20, '#'));
        CHECK_THROWS_AS(load_config(directory / "large.yaml"), ConfigError);
        test::put_file(directory / "ok.yaml", "\xEF\xBB\xBFtask: x\r\nworkspace: ws\r\n");
        const HarnessConfig config = load_config(directory / "ok.yaml");
        CHECK(config.workspace == directory / "ws");
        CHECK(config.base == directory.path());
    }

    TEST_CASE("the schema for editors comes from the same table") {
        const auto schema = boost::json::parse(config_schema()).as_object();
        CHECK(schema.at("additionalProperties") == false);
        const auto& kernel_opt = schema.at("properties").at("kernel_opt").as_object();
        CHECK(kernel_opt.at("properties").at("evaluations").at("default") == 24);
        CHECK(kernel_opt.at("properties").at("proposer").at("enum").as_array().size() == 5);
        const auto& agent =
            schema.at("properties").at("agents").at("additionalProperties").as_object();
        CHECK(agent.at("properties").as_object().contains("instructions"));
        CHECK(agent.at("properties").at("toolsets").at("items").at("required").as_array().size() ==
              1);
    }
}
