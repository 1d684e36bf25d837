#include "agent/chat/element_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <optional>
#include <utility>

#include "agent/chat/call_parser.h"
#include "agent/chat/schema_grammar.h"
#include "agent/chat/schema_rules.h"
#include "model/text/tokenizer.h"
#include "tools/text.h"

namespace skein::agent {

namespace json = boost::json;

namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kBlockOpen = "<tool_call>";
constexpr std::string_view kBlockClose = "</tool_call>";
constexpr std::string_view kInvoke = "<invoke ";
constexpr std::string_view kInvokeName = "<invoke name=\"";
constexpr std::string_view kInvokeClose = "</invoke>";
constexpr int kMaxDepth = 64;

bool is_blank(std::string_view text) {
    return tools::trim(text).empty();
}

/// The value that the text of an element stands for. `schema` may be null: nothing is known.
json::value value_of(std::string_view text, const json::object* schema) {
    const std::string_view type = schema ? type_of(*schema) : "";
    if (schema && has_listed_values(*schema)) {
        const json::value* only = schema->if_contains("const");
        const json::array values = only ? json::array{*only} : schema->at("enum").get_array();
        for (const json::value& value : values) {
            if (element_text(value) == text) return value;
        }
    }
    if (type == "string") return json::string(text);
    if (text.empty() && type == "object") return json::object();
    if (text.empty() && type == "array") return json::array();
    json::parse_options options;
    options.max_depth = kMaxDepth;
    boost::system::error_code error;
    json::value value = json::parse(tools::trim(text), error, {}, options);
    const bool finite = !value.is_double() || std::isfinite(value.get_double());
    if (error || !finite) return json::string(text);
    return value;
}

const json::object* rule_of(const json::object* schema, std::string_view keyword,
                            std::string_view name) {
    if (schema == nullptr) return nullptr;
    const json::value* found = schema->if_contains(keyword);
    if (found != nullptr && keyword == "properties") found = found->get_object().if_contains(name);
    return found == nullptr ? nullptr : &found->get_object();
}

class ElementReader {
  public:
    ElementReader(const MarkedText& reply, std::span<const tools::ToolSpec* const> tools)
        : bytes_(reply.bytes), marks_(reply.marks), tools_(tools) {}

    ParsedReply parse(bool opened_thinking) {
        if (opened_thinking) read_thinking();
        while (!at_end()) {
            out_.text += take_text();
            if (at_end()) break;
            switch (marks_[next_].mark) {
                case Mark::think_open:
                    skip_mark();
                    read_thinking();
                    break;
                case Mark::think_close:
                    skip_mark();
                    break;
                case Mark::tag:
                    read_tag();
                    break;
            }
        }
        finish();
        return std::move(out_);
    }

  private:
    // ---- The cursor: a byte position and the next mark, which is never behind it.

    struct Cursor {
        std::size_t at = 0, next = 0;
    };
    Cursor here() const { return {at_, next_}; }

    bool at_end() const { return at_ == bytes_.size() && next_ == marks_.size(); }
    std::size_t mark_position(std::size_t mark) const {
        return mark < marks_.size() ? marks_[mark].at : bytes_.size();
    }
    /// The bytes up to the next mark.
    std::string_view text_here() const { return bytes_.substr(at_, mark_position(next_) - at_); }
    std::string_view take_text() {
        const std::string_view text = text_here();
        at_ += text.size();
        return text;
    }
    void skip_space() {
        const std::string_view text = text_here();
        at_ += std::min(text.find_first_not_of(kSpace), text.size());
    }
    void skip_mark() {
        ++next_;
        cut_ = true;
    }
    bool at_mark() const { return next_ < marks_.size() && marks_[next_].at == at_; }
    bool at_tag() const { return at_mark() && marks_[next_].mark == Mark::tag; }
    /// The bytes between this tag's mark and the next mark. Requires: at_tag().
    std::string_view tag_text() const { return bytes_.substr(at_, mark_position(next_ + 1) - at_); }
    bool sees_tag(std::string_view tag) const { return at_tag() && tag_text().starts_with(tag); }
    bool take_tag(std::string_view tag) {
        if (!sees_tag(tag)) return false;
        ++next_;
        at_ += tag.size();
        return true;
    }
    /// Everything from `begin` to the cursor as one would read it.
    std::string literal_since(Cursor begin) const {
        std::string text;
        for (std::size_t mark = begin.next; mark < next_; ++mark) {
            text += bytes_.substr(begin.at, marks_[mark].at - begin.at);
            text += spelling(marks_[mark].mark);
            begin.at = marks_[mark].at;
        }
        return text += bytes_.substr(begin.at, at_ - begin.at);
    }

    // ---- The parts of a reply.

    void read_thinking() {
        std::string text;
        out_.unclosed_thinking = true;
        while (!at_end() && out_.unclosed_thinking) {
            text += take_text();
            if (at_end()) break;
            const Mark mark = marks_[next_].mark;
            skip_mark();
            if (mark == Mark::think_close) out_.unclosed_thinking = false;
            if (mark == Mark::tag) text += spelling(mark);
        }
        cut_ = true;
        if (is_blank(text)) return;
        if (!out_.thinking.empty()) out_.thinking += '\n';
        out_.thinking += tools::trim(text);
    }

    void read_tag() {
        cut_ = true;
        if (take_tag(kBlockClose) || take_tag(kInvokeClose)) return;
        const Cursor begin = here();
        if (take_tag(kBlockOpen)) return read_block(begin);
        if (sees_tag(kInvoke)) {
            leave_call();
            return report(begin, "a call must stand inside a <tool_call> block");
        }
        out_.text += spelling(Mark::tag);
        skip_mark();
    }

    void read_block(Cursor begin) {
        while (true) {
            skip_space();
            if (at_end() || take_tag(kBlockClose)) return;
            if (!sees_tag(kInvoke)) break;
            begin = here();
            read_call(begin);
        }
        const std::string got = escape_bytes(text_here().substr(0, 24));
        while (!at_end() && !take_tag(kBlockClose)) step();
        report(begin, fmt::format("expected an <invoke> or the end of the <tool_call> block, each "
                                  "after the namespace token, got \"{}\"",
                                  got));
    }

    void read_call(Cursor begin) {
        std::string name;
        json::object arguments;
        if (read_name(name) && read_arguments(name, arguments)) {
            out_.calls.push_back({{}, std::move(name), json::serialize(arguments)});
            return;
        }
        const std::size_t position = at_ - begin.at;
        at_ = begin.at;
        next_ = begin.next;
        leave_call();
        report(begin, fmt::format("{}, at byte {} of the call", error_, position));
    }

    bool read_name(std::string& name) {
        const std::string_view tag = tag_text();
        const std::size_t end = tag.find("\">", std::min(kInvokeName.size(), tag.size()));
        if (!tag.starts_with(kInvokeName) || end == tag.npos || end == kInvokeName.size()) {
            return fail("expected <invoke name=\"TOOL\"> with the name of a tool");
        }
        name = tag.substr(kInvokeName.size(), end - kInvokeName.size());
        if (!check_utf8(name, "the name of the tool")) return false;
        return take_tag(tag.substr(0, end + 2));
    }

    bool read_arguments(std::string_view name, json::object& arguments) {
        const auto tool = std::ranges::find_if(
            tools_, [name](const tools::ToolSpec* spec) { return spec->name == name; });
        const json::object* schema = tool == tools_.end() ? nullptr : &(*tool)->parameters;
        while (true) {
            skip_space();
            if (take_tag(kInvokeClose)) return true;
            if (!read_member(schema, arguments, 1)) return false;
        }
    }

    /// One `TAG <key> value TAG </key>`.
    bool read_member(const json::object* schema, json::object& object, int depth) {
        std::string key;
        if (!read_key(schema, key)) return false;
        if (object.contains(key)) return fail(fmt::format("<{}> is given twice", key));
        auto value = read_value(rule_of(schema, "properties", key), key, depth);
        if (!value) return false;
        object.emplace(key, std::move(*value));
        return true;
    }

    bool read_key(const json::object* schema, std::string& key) {
        if (!at_tag()) {
            const std::string got = at_end() ? "the end of the reply"
                                             : '"' + escape_bytes(text_here().substr(0, 24)) + '"';
            return fail("expected the namespace token and a tag, got " + got);
        }
        const std::string_view tag = tag_text();
        const json::value* known = schema ? schema->if_contains("properties") : nullptr;
        if (known != nullptr) {
            for (const auto& [name, rule] : known->get_object()) {
                const std::string whole = "<" + std::string(name) + ">";
                if (!tag.starts_with(whole)) continue;
                key = name;
                return take_tag(whole);
            }
        }
        const std::size_t end = tag.find('>');
        const bool wrong = !tag.starts_with('<') || end == tag.npos || end < 2 || tag[1] == '/' ||
                           tag.starts_with(kInvoke);
        if (wrong) {
            return fail(fmt::format("expected <ARGUMENT> or </invoke>, got \"{}\"",
                                    escape_bytes(tag.substr(0, 24))));
        }
        key = tag.substr(1, end - 1);
        if (!check_utf8(key, "the name of an argument")) return false;
        return take_tag(tag.substr(0, end + 1));
    }

    std::optional<json::value> read_value(const json::object* schema, const std::string& key,
                                          int depth) {
        if (depth > kMaxDepth) {
            fail(fmt::format("nested deeper than {}", kMaxDepth));
            return std::nullopt;
        }
        const std::string closing = "</" + key + ">";
        const bool is_string = schema != nullptr && type_of(*schema) == "string";
        if (is_string) return read_string(schema, key, closing);
        const Cursor begin = here();
        const std::string text(take_text());
        if (take_tag(closing)) {
            if (!check_utf8(text, "<" + key + ">")) return std::nullopt;
            return value_of(text, schema);
        }
        if (is_blank(text) && at_tag()) return read_children(schema, closing, depth);
        at_ = begin.at;
        next_ = begin.next;
        fail(fmt::format("<{}> is not closed by the namespace token and {}", key, closing));
        return std::nullopt;
    }

    std::optional<json::value> read_string(const json::object* schema, const std::string& key,
                                           const std::string& closing) {
        const std::string opening = "<" + key + ">";
        std::string text;
        int open = 1;
        const Cursor begin = here();
        while (!at_end()) {
            text += take_text();
            if (sees_tag(closing) && --open == 0) {
                take_tag(closing);
                if (!check_utf8(text, opening)) return std::nullopt;
                return value_of(text, schema);
            }
            if (at_end()) break;
            if (sees_tag(opening)) ++open;
            text += spelling(marks_[next_].mark);
            ++next_;
        }
        at_ = begin.at;
        next_ = begin.next;
        fail(fmt::format("{} is not closed by the namespace token and {}", opening, closing));
        return std::nullopt;
    }

    std::optional<json::value> read_children(const json::object* schema, const std::string& closing,
                                             int depth) {
        const std::string_view type = schema ? type_of(*schema) : "";
        const bool is_array = type == "array" || (type.empty() && sees_tag("<item>"));
        json::array items;
        json::object members;
        while (true) {
            skip_space();
            if (take_tag(closing)) break;
            if (!is_array) {
                if (!read_member(schema, members, depth + 1)) return std::nullopt;
                continue;
            }
            if (!take_tag("<item>")) {
                fail("expected <item> or " + closing + " after the namespace token");
                return std::nullopt;
            }
            auto item = read_value(rule_of(schema, "items", {}), "item", depth + 1);
            if (!item) return std::nullopt;
            items.push_back(std::move(*item));
        }
        return is_array ? json::value(std::move(items)) : json::value(std::move(members));
    }

    // ---- What is wrong with a reply.

    bool fail(std::string error) {
        error_ = std::move(error);
        return false;
    }

    bool check_utf8(const std::string& text, const std::string& what) {
        if (model::to_valid_utf8(text) == text) return true;
        return fail(what + " is not valid UTF-8");
    }

    /// Moves over the bytes up to the next mark, or over the mark. Requires: not at the end.
    void step() {
        if (at_mark()) {
            skip_mark();
        } else {
            take_text();
        }
    }

    /// Moves over a call to its own closing tag, over calls inside it too; without one, to the end
    /// of the reply: what follows could be the content of a string, and must not run.
    void leave_call() {
        int open = 0;
        while (!at_end()) {
            if (sees_tag(kInvoke)) ++open;
            if (sees_tag(kInvokeClose) && --open == 0) {
                take_tag(kInvokeClose);
                return;
            }
            step();
        }
    }

    void report(Cursor begin, std::string error) {
        out_.malformed.push_back({literal_since(begin), std::move(error), out_.calls.size()});
    }

    void finish() {
        if (cut_) out_.text = std::string(tools::trim(out_.text));
        if (!out_.calls.empty() || !out_.malformed.empty()) return;
        // A reply that is nothing but a call without its control tokens was meant as one.
        const std::string_view bare = tools::trim(out_.text);
        const bool opens = bare.starts_with(kInvokeName) || bare.starts_with(kBlockOpen);
        if (!opens || !(bare.ends_with(kInvokeClose) || bare.ends_with(kBlockClose))) return;
        out_.malformed.push_back(
            {std::string(bare), "the namespace token is missing in front of the tags", 0});
    }

    std::string_view bytes_;
    const std::vector<MarkedText::At>& marks_;
    std::span<const tools::ToolSpec* const> tools_;
    std::size_t at_ = 0, next_ = 0;
    bool cut_ = false;  // something was taken out of the text
    std::string error_;
    ParsedReply out_;
};

}  // namespace

std::string_view spelling(Mark mark) {
    switch (mark) {
        case Mark::tag:
            return "]<]minimax[>[";
        case Mark::think_open:
            return "<mm:think>";
        case Mark::think_close:
            return "</mm:think>";
    }
    return {};
}

ParsedReply parse_element_reply(const MarkedText& reply, bool opened_thinking,
                                std::span<const tools::ToolSpec* const> tools) {
    return ElementReader(reply, tools).parse(opened_thinking);
}

}  // namespace skein::agent
