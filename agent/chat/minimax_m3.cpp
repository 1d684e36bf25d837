#include "agent/chat/minimax_m3.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "agent/chat/element_parser.h"
#include "agent/chat/schema_grammar.h"
#include "model/error.h"

namespace skein::agent {

namespace json = boost::json;

namespace {

// The wording the model was trained with.
constexpr std::string_view kIdentity =
    "Your model version is MiniMax-M3, developed by MiniMax. Knowledge cutoff: January 2026. "
    "Founded in early 2022, MiniMax is a global AI foundation model company committed to advancing "
    "the frontiers of AI towards AGI.";
constexpr std::string_view kThinkingRules =
    "\n\n<thinking_instructions>\nYou have a thinking capability that allows you to reason step by "
    "step before responding. When thinking is enabled, wrap your reasoning in "
    "<mm:think></mm:think> tags before your response. When thinking is disabled, begin your "
    "response directly after the </mm:think> prefix. When thinking is adaptive, decide on your own "
    "whether to think for the current turn.\nCurrent thinking mode: ";
constexpr std::string_view kThinkingRulesEnd = "\n</thinking_instructions>";
constexpr std::string_view kToolsBegin =
    "\n\n# Tools\nYou may call one or more tools to assist with the user query.\nHere are the "
    "tools available in JSONSchema format:\n\n<tools>\n";
constexpr std::string_view kToolsEnd =
    "</tools>\n\nTo call tools, wrap all invocations in a single "
    "]<]minimax[>[<tool_call>]<]minimax[>[</tool_call> block. Parameter values containing nested "
    "objects or arrays are recursively expanded into XML elements. Example:\n\n"
    "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"tool-name-1\">"
    "]<]minimax[>[<param-1>value-1]<]minimax[>[</param-1>]<]minimax[>[<param-2>]<]minimax[>[<item>"
    "]<]minimax[>[<key-a>val-a]<]minimax[>[</key-a>]<]minimax[>[<key-b>val-b]<]minimax[>[</key-b>"
    "]<]minimax[>[</item>]<]minimax[>[</param-2>]<]minimax[>[</invoke>\n"
    "]<]minimax[>[<invoke name=\"tool-name-2\">]<]minimax[>[<param-1>value-1]<]minimax[>[</param-1>"
    "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>";

constexpr int kMaxThinkingCharacters = 1 << 24;

std::string_view mode_rule(ThinkingMode mode) {
    switch (mode) {
        case ThinkingMode::enabled:
            return "enabled. You MUST think step by step before every response, including after "
                   "receiving function/tool results.";
        case ThinkingMode::disabled: return "disabled. Do not output any thinking process.";
        case ThinkingMode::adaptive: break;
    }
    return "adaptive. You are encouraged to think for complex decision-making, multi-step "
           "reasoning, or when analyzing function/tool results.";
}

void append(Tokens& to, std::span<const Token> tokens) {
    to.insert(to.end(), tokens.begin(), tokens.end());
}

/// JSON with a space after every comma and colon, as templates print it.
void print_spaced(const json::value& value, std::string& out) {
    if (const json::object* object = value.if_object()) {
        out += '{';
        for (auto member = object->begin(); member != object->end(); ++member) {
            if (member != object->begin()) out += ", ";
            out += json::serialize(json::string(member->key())) + ": ";
            print_spaced(member->value(), out);
        }
        out += '}';
    } else if (const json::array* array = value.if_array()) {
        out += '[';
        for (auto item = array->begin(); item != array->end(); ++item) {
            if (item != array->begin()) out += ", ";
            print_spaced(*item, out);
        }
        out += ']';
    } else {
        out += json::serialize(value);
    }
}

std::string describe(const tools::ToolSpec& spec) {
    std::string text = "<tool>";
    print_spaced(json::object{{"name", spec.name},
                              {"description", spec.description},
                              {"parameters", spec.parameters}},
                 text);
    return text += "</tool>\n";
}

/// The tokens of an element's content: members and items inside tags, null members left out.
class ElementPrinter {
  public:
    ElementPrinter(const model::Tokenizer& tokenizer, Token tag)
        : tokenizer_(tokenizer), tag_(tag) {}

    void print(const json::value& value, Tokens& out) const {
        if (const json::object* object = value.if_object()) {
            for (const auto& [key, member] : *object) {
                if (!member.is_null()) element(std::string(key), member, out);
            }
        } else if (const json::array* array = value.if_array()) {
            for (const json::value& item : *array) element("item", item, out);
        } else {
            append(out, tokenizer_.encode(element_text(value)));
        }
    }

  private:
    void element(const std::string& name, const json::value& value, Tokens& out) const {
        out.push_back(tag_);
        append(out, tokenizer_.encode("<" + name + ">"));
        print(value, out);
        out.push_back(tag_);
        append(out, tokenizer_.encode("</" + name + ">"));
    }

    const model::Tokenizer& tokenizer_;
    Token tag_;
};

}  // namespace

MiniMaxM3::MiniMaxM3(const model::Tokenizer& tokenizer) : tokenizer_(&tokenizer) {
    const auto find = [&](std::string_view text) {
        const auto id = tokenizer.find_special(text);
        if (id) return *id;
        throw model::Error(fmt::format(
            "chat format 'minimax-m3': the model's vocabulary has no control token '{}'; choose "
            "the format the model was trained with", text));
    };
    document_ = find("]~!b[");
    start_ = find("]~b]");
    end_ = find("[e~[");
    tag_ = find(spelling(Mark::tag));
    think_ = {find(spelling(Mark::think_open)), find(spelling(Mark::think_close))};
}

std::string_view MiniMaxM3::call_syntax() const {
    return "inside a <tool_call> block as <invoke name=\"TOOL\"><ARGUMENT>value</ARGUMENT>"
           "</invoke>, with the namespace token in front of every tag";
}

std::vector<Segment> MiniMaxM3::render_system(std::string_view text,
                                              std::span<const tools::ToolSpec* const> tools,
                                              ThinkingMode mode) const {
    std::vector<Segment> out{{Origin::glue, {document_}}};
    begin_turn(out, "system\n");
    std::string rules(kIdentity);
    rules += kThinkingRules;
    rules += mode_rule(mode);
    rules += kThinkingRulesEnd;
    out.push_back({Origin::system, scaffold(rules)});
    end_turn(out);
    begin_turn(out, "developer\n");
    out.push_back({Origin::system, tokenizer_->encode(text.empty() ? default_system() : text)});
    if (!tools.empty()) {
        // Descriptions may come from elsewhere: only the wording around them may hold tokens by id.
        Tokens described = scaffold(kToolsBegin);
        for (const tools::ToolSpec* spec : tools) {
            append(described, tokenizer_->encode(describe(*spec)));
        }
        append(described, scaffold(kToolsEnd));
        out.push_back({Origin::system, std::move(described)});
    }
    end_turn(out);
    return out;
}

std::vector<Segment> MiniMaxM3::render(const Message& message) const {
    std::vector<Segment> out;
    switch (message.role) {
        case Role::system:
            begin_turn(out, "developer\n");
            add_content(out, Origin::system, message);
            break;
        case Role::user:
            begin_turn(out, "user\n");
            add_content(out, Origin::user, message);
            break;
        case Role::tool: return render_results({&message, 1});
        case Role::assistant:
            begin_turn(out, "ai\n");
            Tokens reasoning;
            if (!message.thinking.empty()) {
                reasoning.push_back(think_.open);
                append(reasoning, tokenizer_->encode(message.thinking));
            }
            reasoning.push_back(think_.close);
            out.push_back({Origin::forced, std::move(reasoning)});
            add_content(out, Origin::forced, message);
            if (message.calls.empty()) break;
            Tokens calls{tag_};
            append(calls, scaffold("<tool_call>\n"));
            for (const tools::ToolCall& call : message.calls) add_call(calls, call);
            calls.push_back(tag_);
            append(calls, scaffold("</tool_call>"));
            out.push_back({Origin::forced, std::move(calls)});
    }
    end_turn(out);
    return out;
}

/// Arguments that are no JSON object stand as they are, so that a history can always be rendered.
void MiniMaxM3::add_call(Tokens& out, const tools::ToolCall& call) const {
    out.push_back(tag_);
    append(out, tokenizer_->encode("<invoke name=\"" + call.name + "\">"));
    boost::system::error_code error;
    const json::value arguments = json::parse(call.arguments, error);
    if (!error && arguments.is_object()) {
        ElementPrinter(*tokenizer_, tag_).print(arguments, out);
    } else {
        append(out, tokenizer_->encode(call.arguments));
    }
    out.push_back(tag_);
    append(out, tokenizer_->encode("</invoke>\n"));
}

std::vector<Segment> MiniMaxM3::render_results(std::span<const Message> results) const {
    std::vector<Segment> out;
    if (results.empty()) return out;
    begin_turn(out, "tool");
    for (const Message& message : results) {
        out.push_back({Origin::glue, tokenizer_->encode("\n<response>")});
        add_content(out, Origin::tool, message);
        out.push_back({Origin::glue, tokenizer_->encode("</response>")});
    }
    end_turn(out);
    return out;
}

std::vector<Segment> MiniMaxM3::open_reply(ThinkingMode mode) const {
    std::vector<Segment> out;
    begin_turn(out, "ai\n");
    if (mode == ThinkingMode::enabled) out.back().tokens.push_back(think_.open);
    if (mode == ThinkingMode::disabled) out.back().tokens.push_back(think_.close);
    return out;
}

std::vector<Segment> MiniMaxM3::close_reply(std::span<const Token> reply) const {
    Tokens closing;
    if (reply.empty() || reply.back() != end_) closing.push_back(end_);
    append(closing, tokenizer_->encode("\n"));
    return {{Origin::glue, std::move(closing)}};
}

std::vector<Token> MiniMaxM3::stop_tokens() const {
    std::vector<Token> stops{end_};
    for (const auto& token : {tokenizer_->eos(), tokenizer_->eot()}) {
        if (token && std::ranges::find(stops, *token) == stops.end()) stops.push_back(*token);
    }
    return stops;
}

ParsedReply MiniMaxM3::parse(std::span<const Token> reply, const ReplyContext& context) const {
    const auto stops = stop_tokens();
    if (!reply.empty() && std::ranges::find(stops, reply.back()) != stops.end()) {
        reply = reply.first(reply.size() - 1);
    }
    MarkedText marked;
    for (const Token token : reply) {
        if (token == tag_) {
            marked.marks.push_back({marked.bytes.size(), Mark::tag});
        } else if (token == think_.open) {
            marked.marks.push_back({marked.bytes.size(), Mark::think_open});
        } else if (token == think_.close) {
            marked.marks.push_back({marked.bytes.size(), Mark::think_close});
        } else {
            marked.bytes += tokenizer_->token_bytes(token);
        }
    }
    return parse_element_reply(marked, opens_thinking(context.thinking), context.tools);
}

std::shared_ptr<const model::Grammar> MiniMaxM3::call_grammar(
    std::span<const tools::ToolSpec* const> tools, ThinkingMode mode) const {
    if (tools.empty()) throw model::Error("call grammar: no tools to choose from");
    model::Grammar::Builder builder;
    using Node = model::Grammar::Node;
    const Node tag = builder.token(tag_);
    const auto block_tag = [&](std::string_view text) {
        const auto id = tokenizer_->find_special(text);
        return id ? builder.token(*id) : builder.literal(std::string(text));
    };
    std::vector<Node> calls;
    for (const tools::ToolSpec* spec : tools) {
        const Node name = builder.literal("<invoke name=\"" + spec->name + "\">");
        try {
            calls.push_back(builder.sequence(
                {name, add_argument_elements(builder, spec->parameters, tag_)}));
        } catch (const model::Error& error) {
            throw model::Error(fmt::format("tool '{}': {}", spec->name, error.what()));
        }
    }
    const Node call = builder.any_of(std::move(calls));
    const Node block = builder.sequence({tag, block_tag("<tool_call>"), builder.literal("\n"), tag,
                                         call, tag, builder.literal("</invoke>\n"), tag,
                                         block_tag("</tool_call>")});
    if (mode == ThinkingMode::disabled) return builder.finish(block);
    const Node thought = builder.sequence(
        {builder.raw_text({.min_chars = 0, .max_chars = kMaxThinkingCharacters}),
         builder.token(think_.close)});
    if (mode == ThinkingMode::enabled) return builder.finish(builder.sequence({thought, block}));
    // The model may think, say that it does not, or do neither.
    const Node thinks = builder.sequence({builder.token(think_.open), thought});
    const Node start = builder.any_of({thinks, builder.token(think_.close), builder.literal("")});
    return builder.finish(builder.sequence({start, block}));
}

void MiniMaxM3::begin_turn(std::vector<Segment>& out, std::string_view role) const {
    Tokens tokens{start_};
    append(tokens, tokenizer_->encode(role));
    out.push_back({Origin::glue, std::move(tokens)});
}

void MiniMaxM3::end_turn(std::vector<Segment>& out) const {
    Tokens tokens{end_};
    append(tokens, tokenizer_->encode("\n"));
    out.push_back({Origin::glue, std::move(tokens)});
}

void MiniMaxM3::add_content(std::vector<Segment>& out, Origin origin,
                            const Message& message) const {
    out.push_back(
        {origin, message.tokens.empty() ? tokenizer_->encode(message.text) : message.tokens});
}

Tokens MiniMaxM3::scaffold(std::string_view text) const {
    return tokenizer_->encode_with_specials(text);
}

}  // namespace skein::agent
