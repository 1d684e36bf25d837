#include "harnesses/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "tools/text.h"

namespace skein::harnesses {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxNodes = 50000;
constexpr std::size_t kMaxDepth = 64;

[[noreturn]] void fail(const std::string& name, int line, int column, const std::string& message,
                       const std::string& hint = {}) {
    throw ConfigError(fmt::format("{}:{}:{}: {}", name, line, column, message), name, line, column,
                      hint);
}

std::size_t count_nodes(const YamlNode& node) {
    std::size_t n = 1;
    for (const YamlNode& item : node.items) n += count_nodes(item);
    for (const auto& [key, value] : node.entries) n += 1 + count_nodes(value);
    return n;
}

// Builds the tree bottom up; the open containers are the stack, so depth costs no recursion.
class TreeBuilder : public YAML::EventHandler {
  public:
    explicit TreeBuilder(const std::string& name) : name_(name) {}

    YamlNode take() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        add(node_at(mark, YamlNode::Kind::null), anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end())
            fail_at(mark, "the alias refers to the value that contains it");
        YamlNode copy = found->second.node;
        n_nodes_ += found->second.n_nodes;
        if (n_nodes_ > kMaxNodes) fail_at(mark, too_many());
        copy.line = mark.line + 1;
        copy.column = mark.column + 1;
        add(std::move(copy), 0);
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        if (tag != "?" && tag != "!" && !tag.empty()) {
            fail_at(mark, fmt::format("tags are not supported: {}", tag));
        }
        YamlNode node = node_at(mark, YamlNode::Kind::scalar);
        node.text = value;
        node.quoted = tag == "!";
        add(std::move(node), anchor);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(mark, tag, anchor, YamlNode::Kind::sequence);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(mark, tag, anchor, YamlNode::Kind::map);
    }
    void OnMapEnd() override {
        merge_bases(stack_.back().node);
        close();
    }

  private:
    struct Open {
        YamlNode node;
        YAML::anchor_t anchor = 0;
        bool has_key = false;
        YamlNode key;  // read, its value still to come
        std::unordered_map<std::string, int> lines_of_keys;
    };
    struct Anchored {
        YamlNode node;
        std::size_t n_nodes;
    };

    [[noreturn]] void fail_at(const YAML::Mark& mark, const std::string& message) const {
        fail(name_, mark.line + 1, mark.column + 1, message);
    }
    static std::string too_many() {
        return fmt::format("more than {} values once aliases are written out", kMaxNodes);
    }
    YamlNode node_at(const YAML::Mark& mark, YamlNode::Kind kind) {
        if (++n_nodes_ > kMaxNodes) fail_at(mark, too_many());
        YamlNode node;
        node.kind = kind;
        node.line = mark.line + 1;
        node.column = mark.column + 1;
        return node;
    }
    void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
              YamlNode::Kind kind) {
        if (tag != "?" && !tag.empty())
            fail_at(mark, fmt::format("tags are not supported: {}", tag));
        if (stack_.size() == kMaxDepth)
            fail_at(mark, fmt::format("nested deeper than {}", kMaxDepth));
        stack_.push_back({node_at(mark, kind), anchor, false, {}, {}});
    }
    void close() {
        Open done = std::move(stack_.back());
        stack_.pop_back();
        add(std::move(done.node), done.anchor);
    }

    void add(YamlNode node, YAML::anchor_t anchor) {
        if (anchor != 0) {
            const std::size_t n_nodes = count_nodes(node);
            n_nodes_ += n_nodes;  // the copy kept for aliases takes its memory as well
            anchors_[anchor] = {node, n_nodes};
        }
        if (stack_.empty()) {
            root_ = std::move(node);
        } else if (Open& parent = stack_.back(); parent.node.kind == YamlNode::Kind::sequence) {
            parent.node.items.push_back(std::move(node));
        } else if (!parent.has_key) {
            check_key(parent, node);
            parent.key = std::move(node);
            parent.has_key = true;
        } else {
            parent.node.entries.push_back({std::move(parent.key), std::move(node)});
            parent.has_key = false;
        }
    }

    void check_key(Open& map, const YamlNode& key) const {
        if (key.kind != YamlNode::Kind::scalar) {
            fail(name_, key.line, key.column,
                 fmt::format("a key must be text, got {}; put it in quotes", describe(key.kind)));
        }
        const auto [first, fresh] = map.lines_of_keys.emplace(key.text, key.line);
        if (fresh) return;
        fail(name_, key.line, key.column,
             fmt::format("the key '{}' appears twice, first in line {}", key.text, first->second));
    }

    void merge_bases(YamlNode& map) {
        const auto merge = std::find_if(
            map.entries.begin(), map.entries.end(),
            [](const auto& entry) { return entry.key.text == "<<" && !entry.key.quoted; });
        if (merge == map.entries.end()) return;
        const YamlNode source = std::move(merge->value);
        map.entries.erase(merge);
        const std::vector<YamlNode> bases =
            source.kind == YamlNode::Kind::sequence ? source.items : std::vector<YamlNode>{source};
        for (const YamlNode& base : bases) {
            if (base.kind != YamlNode::Kind::map) {
                fail(name_, source.line, source.column,
                     fmt::format("a merge key takes a mapping or a list of them, got {}",
                                 describe(base.kind)));
            }
            for (const YamlEntry& entry : base.entries) {
                if (!map.find(entry.key.text)) map.entries.push_back(entry);
            }
        }
    }

    const std::string& name_;
    YamlNode root_;
    std::vector<Open> stack_;
    std::unordered_map<YAML::anchor_t, Anchored> anchors_;
    std::size_t n_nodes_ = 0;
};

// yaml-cpp's words for a tab used as indentation do not mention the tab.
std::string explain(const YAML::ParserException& error, std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int number = 0; number <= error.mark.line + 1 && std::getline(lines, line); ++number) {
        const std::size_t end = line.find_first_not_of(" \t");
        const bool tabbed = line.substr(0, end).find('\t') != std::string::npos;
        if (number >= error.mark.line && tabbed) {
            return fmt::format("line {} is indented with a tab; YAML takes spaces only ({})",
                               number + 1, error.msg);
        }
    }
    return "not valid YAML: " + error.msg;
}

std::string with_lf(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
        out += text[i];
    }
    return out;
}

void check_text(std::string_view text, const std::string& name) {
    if (text.size() > kMaxBytes) {
        fail(name, 1, 1,
             fmt::format("{} bytes, a configuration has at most {}", text.size(), kMaxBytes));
    }
    int line = 1;
    for (std::size_t begin = 0; begin < text.size(); ++line) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view row = text.substr(begin, end - begin);
        if (const std::size_t nul = row.find('\0'); nul != row.npos) {
            fail(name, line, static_cast<int>(nul) + 1, "a NUL byte; is this a text file?");
        }
        if (!tools::is_utf8(row)) fail(name, line, 1, "not UTF-8");
        begin = end + 1;
    }
}

std::string quote(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\t':
                out += "\\t";
                break;
            case '\r':
                out += "\\r";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
                    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
                } else {
                    out += c;
                }
        }
    }
    return out + '"';
}

bool is_plain_word(std::string_view text) {
    const auto is_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    };
    const bool letter = !text.empty() && text[0] != '-' && (text[0] < '0' || text[0] > '9');
    static constexpr std::string_view kWords[] = {"null", "Null", "NULL", "true", "false", "yes",
                                                  "no",   "on",   "off",  "y",    "n"};
    return letter && std::all_of(text.begin(), text.end(), is_word) &&
           std::find(std::begin(kWords), std::end(kWords), text) == std::end(kWords);
}

void print(const YamlNode& node, std::size_t indent, std::string& out) {
    const std::string space(indent, ' ');
    switch (node.kind) {
        case YamlNode::Kind::null:
            out += " null\n";
            break;
        case YamlNode::Kind::scalar:
            out += ' ' + (node.quoted ? quote(node.text) : node.text) + '\n';
            break;
        case YamlNode::Kind::sequence:
            if (node.items.empty()) out += " []";
            out += '\n';
            for (const YamlNode& item : node.items) {
                std::string text;
                print(item, indent + 2, text);
                // The first key of a mapping stands beside the dash.
                const bool map = item.kind == YamlNode::Kind::map && !item.entries.empty();
                out += space + '-' + (map ? ' ' + text.substr(1 + indent + 2) : text);
            }
            break;
        case YamlNode::Kind::map:
            if (node.entries.empty()) out += " {}";
            out += '\n';
            for (const auto& [key, value] : node.entries) {
                out += space + (is_plain_word(key.text) ? key.text : quote(key.text)) + ':';
                print(value, indent + 2, out);
            }
            break;
    }
}

}  // namespace

YamlNode YamlNode::plain(std::string text) {
    YamlNode node;
    node.kind = Kind::scalar;
    node.text = std::move(text);
    return node;
}

YamlNode YamlNode::string(std::string text) {
    YamlNode node = plain(std::move(text));
    node.quoted = true;
    return node;
}

const YamlNode* YamlNode::find(std::string_view key) const {
    for (const auto& [name, value] : entries) {
        if (name.text == key) return &value;
    }
    return nullptr;
}

std::string_view describe(YamlNode::Kind kind) {
    switch (kind) {
        case YamlNode::Kind::null:
            return "nothing";
        case YamlNode::Kind::scalar:
            return "text";
        case YamlNode::Kind::sequence:
            return "a list";
        case YamlNode::Kind::map:
            return "a mapping";
    }
    return "nothing";
}

YamlNode parse_yaml(std::string_view text, const std::string& name) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (text.substr(0, kMark.size()) == kMark) text.remove_prefix(kMark.size());
    check_text(text, name);
    const std::string lines = with_lf(text);
    TreeBuilder builder(name);
    try {
        std::istringstream input(lines);
        YAML::Parser parser(input);
        if (!parser.HandleNextDocument(builder)) fail(name, 1, 1, "the file is empty");
        YamlNode root = builder.take();
        TreeBuilder rest(name);
        if (parser.HandleNextDocument(rest)) {
            const YamlNode second = rest.take();
            fail(name, std::max(second.line, 1), std::max(second.column, 1),
                 "a second document; a configuration is one");
        }
        return root;
    } catch (const YAML::ParserException& error) {
        fail(name, error.mark.line + 1, error.mark.column + 1, explain(error, lines));
    }
}

std::string print_yaml(const YamlNode& node) {
    std::string out;
    print(node, 0, out);
    return out.substr(out.find_first_not_of(" \n"));
}

}  // namespace skein::harnesses
