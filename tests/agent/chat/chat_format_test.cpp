#include "agent/chat/chat_format.h"

#include <doctest/doctest.h>

#include "model/error.h"
#include "tests/support/byte_vocabulary.h"

using namespace skein::agent;

TEST_SUITE("agent/chat/chat_format") {
    TEST_CASE("chat_format: an unknown name is refused with the known ones") {
        const skein::model::Tokenizer tokenizer(skein::test::byte_vocabulary());
        CHECK_THROWS_WITH_AS(make_chat_format("jinja", tokenizer),
                             "unknown chat format 'jinja'; known: chatml, qwen2, qwen3, "
                             "qwen3-thinking, minimax-m3",
                             skein::model::Error);
        for (const char* name : {"chatml", "qwen2", "qwen3", "qwen3-thinking"}) {
            CHECK(make_chat_format(name, tokenizer)->name() == name);
        }
    }

    TEST_CASE("chat_format: modes of thinking have names, and other words are no modes") {
        for (const ThinkingMode mode :
             {ThinkingMode::adaptive, ThinkingMode::enabled, ThinkingMode::disabled}) {
            CHECK(parse_thinking_mode(to_string(mode)) == mode);
        }
        CHECK_FALSE(parse_thinking_mode("on"));
        CHECK_FALSE(parse_thinking_mode(""));
    }

    TEST_CASE("chat_format: C10, C11, templates are recognised by markers and never executed") {
        const std::string base = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
                                 "<|im_end|>{% endfor %}";
        CHECK(recognise_chat_template("]~b]ai\n<mm:think> ]<]minimax[>[ <tool_call>") ==
              "minimax-m3");
        CHECK(recognise_chat_template(base) == "chatml");
        CHECK(recognise_chat_template(base + "<tool_response>") == "qwen2");
        CHECK(recognise_chat_template(base + "<tool_response> '\\n<think>\\n' + reasoning") ==
              "qwen3");
        CHECK(recognise_chat_template(base + "<tool_response>" +
                                      "{{- '<|im_start|>assistant\\n<think>\\n' }}") ==
              "qwen3-thinking");
        // C10: tags, filters and syntax errors of the template language do not matter.
        CHECK(recognise_chat_template("{% generation %}{{ x | nonsense }}{% if %}" + base) ==
              "chatml");
    }

    TEST_CASE("chat_format: what is not known is nothing, not a guess") {
        CHECK_FALSE(recognise_chat_template(""));
        CHECK_FALSE(recognise_chat_template("[INST] {{ prompt }} [/INST]"));
        CHECK_FALSE(recognise_chat_template("<|im_start|> only"));
        CHECK_FALSE(recognise_chat_template("<|im_start|><|im_end|><|tool_list_start|>"));
        CHECK_FALSE(recognise_chat_template("{{ strftime_now() }}<|start_header_id|>"));
    }
}
