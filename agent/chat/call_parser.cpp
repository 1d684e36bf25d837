#include "agent/chat/call_parser.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/stream_parser.hpp>
#include <optional>

#include "tools/text.h"

namespace skein::agent {

namespace {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";
constexpr std::string_view kCallOpen = "<tool_call>";
constexpr std::string_view kCallClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kMaxDepth = 64;

std::size_t skip_space(std::string_view bytes, std::size_t at) {
    const std::size_t next = bytes.find_first_not_of(kSpace, at);
    return next == std::string_view::npos ? bytes.size() : next;
}

/// One past the string that starts at `at`. Requires: text of a valid JSON document.
std::size_t end_of_string(std::string_view json, std::size_t at) {
    for (++at; json[at] != '"'; ++at) {
        if (json[at] == '\\') ++at;
    }
    return at + 1;
}

/// One past the value that starts at `at`. Requires: text of a valid JSON object.
std::size_t end_of_value(std::string_view json, std::size_t at) {
    int depth = 0;
    while (true) {
        const char c = json[at];
        if (c == '"') {
            at = end_of_string(json, at);
        } else if (c == '{' || c == '[') {
            ++depth;
            ++at;
        } else if (c == '}' || c == ']') {
            --depth;
            ++at;
        } else if (depth == 0) {
            return std::min(json.find_first_of(",]} \t\r\n", at), json.size());
        } else {
            ++at;
        }
        if (depth == 0) return at;
    }
}

struct JsonSpan {
    std::size_t end = 0;  ///< one past the object, or where it stopped being JSON
    std::string error;    ///< empty: a complete object
};

/// Reads the JSON object that starts at `begin` to its own end.
JsonSpan read_object(std::string_view bytes, std::size_t begin) {
    if (begin >= bytes.size() || bytes[begin] != '{') {
        const std::string got =
            begin >= bytes.size() ? "the end" : escape_bytes(bytes.substr(begin, 1));
        return {begin, fmt::format("expected a JSON object starting with {{, got {}", got)};
    }
    boost::json::parse_options options;
    options.max_depth = kMaxDepth;
    boost::json::stream_parser parser({}, options);
    boost::system::error_code error;
    const std::size_t used = parser.write_some(bytes.data() + begin, bytes.size() - begin, error);
    if (error) {
        const std::string near = escape_bytes(bytes.substr(begin + used, 12));
        return {begin + used,
                fmt::format("not valid JSON at byte {} of the object: {}, near \"{}\"", used,
                            error.message(), near)};
    }
    if (!parser.done()) {
        return {bytes.size(), fmt::format("the JSON object is not closed after {} bytes", used)};
    }
    return {end_of_value(bytes, begin), {}};
}

/// The raw texts of a call object's two members.
struct CallMembers {
    std::optional<std::string> name, arguments;
    std::string error;
};

CallMembers read_members(std::string_view object) {
    CallMembers members;
    std::size_t at = skip_space(object, 1);
    while (object[at] != '}') {
        const std::size_t key_end = end_of_string(object, at);
        const auto key =
            boost::json::parse(boost::json::string_view(object.data() + at, key_end - at));
        const std::size_t value = skip_space(object, object.find(':', key_end) + 1);
        const std::size_t value_end = end_of_value(object, value);
        const std::string raw(object.substr(value, value_end - value));
        for (auto [wanted, slot] :
             {std::pair{"name", &members.name}, std::pair{"arguments", &members.arguments}}) {
            if (key.as_string() != wanted) continue;
            if (*slot) members.error = fmt::format("\"{}\" is given twice", wanted);
            *slot = raw;
        }
        at = skip_space(object, value_end);
        if (object[at] == ',') at = skip_space(object, at + 1);
    }
    if (!members.error.empty()) return members;
    if (!members.name) {
        members.error = "the object has no \"name\"";
    } else if (members.name->front() != '"' || *members.name == "\"\"") {
        members.error = "\"name\" must be a non-empty string, got " + *members.name;
    } else if (!members.arguments) {
        members.error = "the object has no \"arguments\"";
    } else {
        members.name = std::string(boost::json::parse(*members.name).as_string());
    }
    return members;
}

class ReplyParser {
  public:
    ReplyParser(std::string_view bytes, bool opened_thinking)
        : bytes_(bytes), in_thinking_(opened_thinking) {}

    ParsedReply parse() {
        if (in_thinking_) read_thinking();
        while (at_ < bytes_.size()) read_next();
        finish();
        return std::move(out_);
    }

  private:
    void read_next() {
        constexpr std::array kTags = {kThinkOpen, kThinkClose, kCallOpen, kCallClose};
        std::size_t begin = bytes_.size();
        std::string_view tag;
        for (const std::string_view candidate : kTags) {
            const std::size_t found = bytes_.find(candidate, at_);
            if (found < begin) {
                begin = found;
                tag = candidate;
            }
        }
        out_.text += bytes_.substr(at_, begin - at_);
        at_ = begin + tag.size();
        if (tag.empty()) return;
        cut_ = true;
        if (tag == kThinkOpen) read_thinking();
        if (tag == kThinkClose) close_thinking(begin);
        if (tag == kCallOpen) read_call();
    }

    void read_thinking() {
        cut_ = true;
        thought_ = true;
        const std::size_t end = bytes_.find(kThinkClose, at_);
        out_.unclosed_thinking = end == std::string_view::npos;
        const std::size_t stop = out_.unclosed_thinking ? bytes_.size() : end;
        if (!out_.thinking.empty()) out_.thinking += '\n';
        out_.thinking += tools::trim(bytes_.substr(at_, stop - at_));
        at_ = out_.unclosed_thinking ? stop : stop + kThinkClose.size();
    }

    /// Only the closing tag was generated: all of the reply so far was thinking.
    void close_thinking(std::size_t begin) {
        if (thought_) return;
        thought_ = true;
        out_ = {};
        out_.thinking = tools::trim(bytes_.substr(0, begin));
    }

    void read_call() {
        const std::size_t opened = at_ - kCallOpen.size();
        const std::size_t begin = skip_space(bytes_, at_);
        const JsonSpan object = read_object(bytes_, begin);
        if (!object.error.empty()) return report(opened, object.error);
        const std::size_t close = skip_space(bytes_, object.end);
        if (!bytes_.substr(close).starts_with(kCallClose)) {
            return report(opened,
                          fmt::format("expected </tool_call> after the JSON object at byte {}",
                                      close - opened));
        }
        at_ = close + kCallClose.size();
        CallMembers members = read_members(bytes_.substr(begin, object.end - begin));
        if (!members.error.empty()) {
            out_.malformed.push_back({std::string(bytes_.substr(opened, at_ - opened)),
                                      members.error, out_.calls.size()});
            return;
        }
        out_.calls.push_back({{}, std::move(*members.name), std::move(*members.arguments)});
    }

    /// A broken call reaches to its closing tag outside of any string; without one, to the end of
    /// the reply: what follows could be the content of a string, and must not run.
    void report(std::size_t opened, std::string error) {
        std::size_t at = opened + kCallOpen.size();
        bool in_string = false;
        for (; at < bytes_.size(); ++at) {
            if (in_string && bytes_[at] == '\\') {
                ++at;
            } else if (bytes_[at] == '"') {
                in_string = !in_string;
            } else if (!in_string && bytes_.substr(at).starts_with(kCallClose)) {
                break;
            }
        }
        at_ = std::min(at + kCallClose.size(), bytes_.size());
        out_.malformed.push_back({std::string(bytes_.substr(opened, at_ - opened)),
                                  std::move(error), out_.calls.size()});
    }

    void finish() {
        if (cut_) out_.text = std::string(tools::trim(out_.text));
        if (!out_.calls.empty() || !out_.malformed.empty()) return;
        const std::string_view bare = tools::trim(out_.text);
        const JsonSpan object = read_object(bare, 0);
        if (!object.error.empty() || object.end != bare.size()) return;
        if (!read_members(bare).error.empty()) return;
        out_.malformed.push_back(
            {std::string(bare), "a call must stand between <tool_call> and </tool_call>", 0});
    }

    std::string_view bytes_;
    std::size_t at_ = 0;
    bool in_thinking_;
    bool thought_ = false;
    bool cut_ = false;  // something was taken out of the text
    ParsedReply out_;
};

/// Length of the valid UTF-8 character at `at`, 0 when there is none.
std::size_t utf8_length(std::string_view bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
    const unsigned char lead = byte(0);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || at + length > bytes.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    // Overlong forms, surrogates and values above U+10FFFF.
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return length;
}

}  // namespace

ParsedReply parse_hermes_reply(std::string_view bytes, bool opened_thinking) {
    return ReplyParser(bytes, opened_thinking).parse();
}

std::string escape_bytes(std::string_view bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = utf8_length(bytes, at);
        const auto byte = static_cast<unsigned char>(bytes[at]);
        if (length == 0 || byte < 0x20 || byte == 0x7F) {
            out += fmt::format("\\x{:02X}", byte);
            ++at;
        } else {
            out += bytes.substr(at, length);
            at += length;
        }
    }
    return out;
}

}  // namespace skein::agent
