#include "agent/chat/chat_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agent/chat/chatml.h"
#include "agent/chat/minimax_m3.h"
#include "model/error.h"

namespace skein::agent {

namespace {

constexpr std::string_view kMiniMaxM3 = "minimax-m3";

constexpr ChatMLStyle kStyles[] = {
    {.name = "chatml",
     .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {.name = "qwen2",
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     .wrap_results = true},
    {.name = "qwen3", .wrap_results = true, .thinks = true},
    {.name = "qwen3-thinking", .wrap_results = true, .thinks = true, .opens_thinking = true},
};

}  // namespace

std::unique_ptr<ChatFormat> make_chat_format(std::string_view name,
                                             const model::Tokenizer& tokenizer) {
    std::vector<std::string_view> known;
    for (const ChatMLStyle& style : kStyles) {
        if (style.name == name) return std::make_unique<ChatML>(style, tokenizer);
        known.push_back(style.name);
    }
    if (name == kMiniMaxM3) return std::make_unique<MiniMaxM3>(tokenizer);
    known.push_back(kMiniMaxM3);
    throw model::Error(
        fmt::format("unknown chat format '{}'; known: {}", name, fmt::join(known, ", ")));
}

std::optional<std::string> recognise_chat_template(std::string_view template_text) {
    const auto has = [&](std::string_view marker) {
        return template_text.find(marker) != std::string_view::npos;
    };
    if (has("]<]minimax[>[") && has("<mm:think>") && has("]~b]")) return std::string(kMiniMaxM3);
    // A template file holds the newline either as a character or as the escape \n of its language.
    const bool opens_thinking = has("assistant\n<think>") || has("assistant\\n<think>");
    if (!has("<|im_start|>") || !has("<|im_end|>")) return std::nullopt;
    if (has("<tool_response>")) {
        if (opens_thinking) return "qwen3-thinking";
        return has("<think>") ? "qwen3" : "qwen2";
    }
    // Other members of the family put their own markers around thinking or calls.
    if (has("<think>") || has("<tool_call>") || has("<|tool")) return std::nullopt;
    return "chatml";
}

}  // namespace skein::agent
