#include "agent/chat/chatml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>

#include "agent/chat/call_parser.h"
#include "agent/chat/schema_grammar.h"
#include "model/error.h"

namespace skein::agent {

namespace {

// The wording the Qwen2.5 and Qwen3 templates were trained with.
constexpr std::string_view kToolsBegin =
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
constexpr std::string_view kToolsEnd =
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>";

constexpr std::array<std::string_view, 6> kTags = {"<tool_call>", "</tool_call>",
                                                   "<tool_response>", "</tool_response>",
                                                   "<think>", "</think>"};

constexpr std::string_view kControlTokens[] = {"<|im_start|>", "<|im_end|>"};

std::string signature(const tools::ToolSpec& spec) {
    const boost::json::object function{{"name", spec.name},
                                       {"description", spec.description},
                                       {"parameters", spec.parameters}};
    return boost::json::serialize(
        boost::json::object{{"type", "function"}, {"function", function}});
}

void append(Tokens& to, std::span<const Token> tokens) {
    to.insert(to.end(), tokens.begin(), tokens.end());
}

}  // namespace

ChatML::ChatML(const ChatMLStyle& style, const model::Tokenizer& tokenizer)
    : style_(style), tokenizer_(&tokenizer) {
    const auto find = [&](std::string_view text) {
        const auto id = tokenizer.find_special(text);
        if (!id) {
            throw model::Error(fmt::format(
                "chat format '{}': the model's vocabulary has no control token '{}'; "
                "choose the format the model was trained with", style_.name, text));
        }
        return *id;
    };
    start_ = find(kControlTokens[0]);
    end_ = find(kControlTokens[1]);
}

bool ChatML::supports(ThinkingMode mode) const {
    if (mode == ThinkingMode::enabled) return style_.thinks;
    return mode == ThinkingMode::adaptive || !style_.opens_thinking;
}

std::optional<ThinkingTags> ChatML::thinking_tags() const {
    const auto open = tokenizer_->find_special("<think>");
    const auto close = tokenizer_->find_special("</think>");
    if (!style_.thinks || !open || !close) return std::nullopt;
    return ThinkingTags{*open, *close};
}

std::string_view ChatML::call_syntax() const {
    return "as <tool_call>\n{\"name\": ..., \"arguments\": {...}}\n</tool_call> with valid JSON";
}

std::vector<Segment> ChatML::render_system(std::string_view text,
                                           std::span<const tools::ToolSpec* const> tools,
                                           ThinkingMode) const {
    std::vector<Segment> out;
    begin_message(out, "system");
    out.push_back({Origin::system, tokenizer_->encode(text)});
    if (!tools.empty()) {
        // Descriptions may come from elsewhere: only the wording around them may hold tags by id.
        Tokens described = scaffold(kToolsBegin);
        for (const tools::ToolSpec* spec : tools) {
            append(described, tokenizer_->encode('\n' + signature(*spec)));
        }
        append(described, scaffold(kToolsEnd));
        out.push_back({Origin::system, std::move(described)});
    }
    end_message(out);
    return out;
}

std::vector<Segment> ChatML::render(const Message& message) const {
    if (message.role == Role::tool && style_.wrap_results) return render_results({&message, 1});
    std::vector<Segment> out;
    begin_message(out, to_string(message.role));
    switch (message.role) {
        case Role::system: add_content(out, Origin::system, message); break;
        case Role::user: add_content(out, Origin::user, message); break;
        case Role::tool: add_content(out, Origin::tool, message); break;
        case Role::assistant: add_content(out, Origin::forced, message); break;
    }
    for (const tools::ToolCall& call : message.calls) {
        Tokens tokens = scaffold("\n<tool_call>\n");
        const std::string name = boost::json::serialize(boost::json::string(call.name));
        append(tokens, tokenizer_->encode(fmt::format("{{\"name\": {}, \"arguments\": {}}}", name,
                                                      call.arguments)));
        append(tokens, scaffold("\n</tool_call>"));
        out.push_back({Origin::forced, std::move(tokens)});
    }
    end_message(out);
    return out;
}

std::vector<Segment> ChatML::render_results(std::span<const Message> results) const {
    std::vector<Segment> out;
    if (results.empty()) return out;
    if (!style_.wrap_results) {
        for (const Message& message : results) {
            std::ranges::move(render(message), std::back_inserter(out));
        }
        return out;
    }
    begin_message(out, "user");
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::string_view opening = i == 0 ? "<tool_response>\n" : "\n<tool_response>\n";
        out.push_back({Origin::glue, scaffold(opening)});
        add_content(out, Origin::tool, results[i]);
        out.push_back({Origin::glue, scaffold("\n</tool_response>")});
    }
    end_message(out);
    return out;
}

std::vector<Segment> ChatML::open_reply(ThinkingMode mode) const {
    std::vector<Segment> out;
    begin_message(out, "assistant");
    if (style_.opens_thinking) append(out.back().tokens, scaffold("<think>\n"));
    if (style_.thinks && mode == ThinkingMode::disabled) {
        append(out.back().tokens, scaffold("<think>\n\n</think>\n\n"));
    }
    return out;
}

std::vector<Segment> ChatML::close_reply(std::span<const Token> reply) const {
    Tokens closing;
    if (reply.empty() || reply.back() != end_) closing.push_back(end_);
    append(closing, tokenizer_->encode("\n"));
    return {{Origin::glue, std::move(closing)}};
}

std::vector<Token> ChatML::stop_tokens() const {
    std::vector<Token> stops{end_};
    for (const auto& token : {tokenizer_->eos(), tokenizer_->eot()}) {
        if (token && std::ranges::find(stops, *token) == stops.end()) stops.push_back(*token);
    }
    if (const auto text_end = tokenizer_->find_special("<|endoftext|>")) {
        if (std::ranges::find(stops, *text_end) == stops.end()) stops.push_back(*text_end);
    }
    return stops;
}

ParsedReply ChatML::parse(std::span<const Token> reply, const ReplyContext&) const {
    const auto stops = stop_tokens();
    if (!reply.empty() && std::ranges::find(stops, reply.back()) != stops.end()) {
        reply = reply.first(reply.size() - 1);
    }
    return parse_hermes_reply(tokenizer_->decode(reply), style_.opens_thinking);
}

std::shared_ptr<const model::Grammar> ChatML::call_grammar(
    std::span<const tools::ToolSpec* const> tools, ThinkingMode) const {
    if (tools.empty()) throw model::Error("call grammar: no tools to choose from");
    model::Grammar::Builder builder;
    std::vector<model::Grammar::Node> calls;
    for (const tools::ToolSpec* spec : tools) {
        const std::string name = boost::json::serialize(boost::json::string(spec->name));
        const auto head = builder.literal(name + ", \"arguments\": ");
        const auto arguments = add_schema(builder, spec->parameters);
        calls.push_back(builder.sequence({head, arguments}));
    }
    const auto tag = [&](std::string_view text) {
        const auto id = tokenizer_->find_special(text);
        return id ? builder.token(*id) : builder.literal(std::string(text));
    };
    std::vector<model::Grammar::Node> parts;
    if (style_.opens_thinking) parts = {tag("</think>"), builder.literal("\n\n")};
    parts.push_back(tag("<tool_call>"));
    parts.push_back(builder.literal("\n{\"name\": "));
    parts.push_back(builder.any_of(std::move(calls)));
    parts.push_back(builder.literal("}\n"));
    parts.push_back(tag("</tool_call>"));
    return builder.finish(builder.sequence(std::move(parts)));
}

void ChatML::begin_message(std::vector<Segment>& out, std::string_view role) const {
    Tokens tokens{start_};
    append(tokens, tokenizer_->encode(std::string(role) + '\n'));
    out.push_back({Origin::glue, std::move(tokens)});
}

void ChatML::end_message(std::vector<Segment>& out) const {
    Tokens tokens{end_};
    append(tokens, tokenizer_->encode("\n"));
    out.push_back({Origin::glue, std::move(tokens)});
}

void ChatML::add_content(std::vector<Segment>& out, Origin origin, const Message& message) const {
    out.push_back(
        {origin, message.tokens.empty() ? tokenizer_->encode(message.text) : message.tokens});
}

Tokens ChatML::scaffold(std::string_view text) const {
    // Without ids for the tags the text stays whole: splitting it would tokenise it differently.
    Tokens out;
    std::size_t done = 0;
    for (std::size_t at = text.find('<'); at < text.size(); at = text.find('<', at + 1)) {
        for (const std::string_view tag : kTags) {
            if (!text.substr(at).starts_with(tag)) continue;
            const auto id = tokenizer_->find_special(tag);
            if (!id) continue;
            append(out, tokenizer_->encode(text.substr(done, at - done)));
            out.push_back(*id);
            done = at + tag.size();
        }
    }
    append(out, tokenizer_->encode(text.substr(done)));
    return out;
}

}  // namespace skein::agent
