#include "model/sampling/grammar.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.h"
#include "model/sampling/grammar_machine.h"
#include "model/text/unicode.h"

namespace skein::model {

namespace {

constexpr std::size_t kMaxNodes = 1 << 16;
constexpr std::size_t kMaxBytes = 1 << 24;  // of literals and tries
constexpr int kMaxDepth = 512;
constexpr std::size_t kMaxMembers = 64;
constexpr int kMaxEntries = 64;  // of an array or object whose shape is free
constexpr std::size_t kMaxForced = 4096;

/// `"name":` as compact JSON.
std::string key_text(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            text += '\\';
            text += c;
        } else if (byte < 0x20) {
            text += fmt::format("\\u{:04x}", byte);
        } else {
            text += c;
        }
    }
    return text + "\":";
}

bool takes_token(const Grammar::Impl& grammar, const ThreadSet& state) {
    ThreadSet next;
    return std::any_of(grammar.tokens.begin(), grammar.tokens.end(), [&](Token token) {
        step(grammar, state, symbol_of(token), next);
        return !next.empty();
    });
}

void check_members(const std::vector<Grammar::Builder::Member>& members) {
    if (members.size() > kMaxMembers) {
        throw Error(fmt::format("grammar: an object with {} members; expected at most {}",
                                members.size(), kMaxMembers));
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (to_valid_utf8(members[i].name) != members[i].name) {
            throw Error(fmt::format("grammar: member {} has a name that is not UTF-8", i));
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (members[j].name != members[i].name) continue;
            throw Error(fmt::format("grammar: two members are named '{}'", members[i].name));
        }
    }
}

}  // namespace

struct Grammar::Builder::Impl {
    Grammar::Impl graph;
    std::size_t bytes = 0;

    Node add(GrammarNode node) {
        for (const Node child : node.children) {
            if (child < 0 || static_cast<std::size_t>(child) >= graph.nodes.size()) {
                throw Error(fmt::format("grammar: node {} is not of this builder", child));
            }
            node.depth = std::max(node.depth, 1 + at(child).depth);
        }
        if (node.token >= 0 &&
            std::find(graph.tokens.begin(), graph.tokens.end(), node.token) == graph.tokens.end()) {
            graph.tokens.push_back(node.token);
        }
        bytes += node.bytes.size() + node.trie.size() * 16;
        if (node.depth > kMaxDepth || graph.nodes.size() >= kMaxNodes || bytes > kMaxBytes) {
            throw Error(fmt::format(
                "grammar: too large: depth {} of {}, {} nodes of {}, {} literal bytes of {}",
                node.depth, kMaxDepth, graph.nodes.size() + 1, kMaxNodes, bytes, kMaxBytes));
        }
        graph.nodes.push_back(std::move(node));
        return static_cast<Node>(graph.nodes.size() - 1);
    }
    const GrammarNode& at(Node node) const { return graph.nodes[static_cast<std::size_t>(node)]; }
};

Grammar::Builder::Builder() : impl_(std::make_unique<Impl>()) {}
Grammar::Builder::~Builder() = default;

Grammar::Node Grammar::Builder::literal(std::string bytes) {
    GrammarNode node;
    node.nullable = bytes.empty();
    node.bytes = std::move(bytes);
    return impl_->add(std::move(node));
}

Grammar::Node Grammar::Builder::choice(std::vector<std::string> literals) {
    if (literals.empty()) throw Error("grammar: a choice of nothing matches no text");
    GrammarNode node;
    node.kind = NodeKind::choice;
    for (std::size_t i = 0; i < literals.size(); ++i) {
        if (literals[i].empty()) throw Error("grammar: a choice may not hold the empty text");
        node.trie.insert(literals[i], static_cast<int>(i));
    }
    return impl_->add(std::move(node));
}

Grammar::Node Grammar::Builder::any_of(std::vector<Node> alternatives) {
    if (alternatives.empty()) throw Error("grammar: one of no alternatives matches no text");
    GrammarNode node;
    node.kind = NodeKind::any_of;
    node.children = std::move(alternatives);
    const Node index = impl_->add(std::move(node));
    GrammarNode& added = impl_->graph.nodes.back();
    added.nullable = std::any_of(added.children.begin(), added.children.end(),
                                 [this](Node child) { return impl_->at(child).nullable; });
    return index;
}

Grammar::Node Grammar::Builder::sequence(std::vector<Node> parts) {
    GrammarNode node;
    node.kind = NodeKind::sequence;
    node.children = std::move(parts);
    const Node index = impl_->add(std::move(node));
    GrammarNode& added = impl_->graph.nodes.back();
    added.nullable = std::all_of(added.children.begin(), added.children.end(),
                                 [this](Node child) { return impl_->at(child).nullable; });
    return index;
}

Grammar::Node Grammar::Builder::optional(Node part) {
    return any_of({part, literal("")});
}

Grammar::Node Grammar::Builder::repeat(Node item, Node separator, int min, int max) {
    if (min < 0 || (max >= 0 && max < min)) {
        throw Error(fmt::format("grammar: a repeat of {} to {} items matches no text", min, max));
    }
    GrammarNode node;
    node.kind = NodeKind::repeat;
    node.children = {item, separator};
    node.min = min;
    node.max = max;
    node.nullable = min == 0;
    const Node index = impl_->add(std::move(node));
    if (impl_->at(item).nullable) {
        throw Error("grammar: the item of a repeat can be empty, so its number has no meaning");
    }
    return index;
}

Grammar::Node Grammar::Builder::token(Token id) {
    if (id < 0) throw Error(fmt::format("grammar: {} is no token", id));
    GrammarNode node;
    node.kind = NodeKind::token;
    node.token = id;
    return impl_->add(std::move(node));
}

Grammar::Node Grammar::Builder::raw_text(RawTextLimits limits) {
    if (limits.min_chars < 0 || limits.max_chars < limits.min_chars) {
        throw Error(fmt::format("grammar: a text of {} to {} characters matches no text",
                                limits.min_chars, limits.max_chars));
    }
    GrammarNode node;
    node.kind = NodeKind::raw_text;
    node.nullable = limits.min_chars == 0;
    node.raw = limits;
    return impl_->add(std::move(node));
}

Grammar::Node Grammar::Builder::json_string(JsonStringLimits limits) {
    if (limits.min_chars < 0 || limits.max_chars < limits.min_chars) {
        throw Error(fmt::format("grammar: a string of {} to {} characters matches no text",
                                limits.min_chars, limits.max_chars));
    }
    GrammarNode node;
    node.kind = NodeKind::json_string;
    node.string = limits;
    return impl_->add(std::move(node));
}

Grammar::Node Grammar::Builder::json_number(JsonNumberLimits limits) {
    if (!number_possible(limits)) {
        throw Error(
            limits.integer
                ? fmt::format("grammar: no integer lies between {} and {}",
                              limits.minimum.value_or(0), limits.maximum.value_or(0))
                : fmt::format("grammar: no number that can be written lies between {} and {}",
                              limits.real_minimum.value_or(-9e12),
                              limits.real_maximum.value_or(9e12)));
    }
    GrammarNode node;
    node.kind = NodeKind::json_number;
    node.number = limits;
    return impl_->add(std::move(node));
}

Grammar::Node Grammar::Builder::json_value(int max_depth) {
    const Node text = json_string({});
    const Node scalar = any_of({text, json_number({}), choice({"true", "false", "null"})});
    const Node comma = literal(",");
    const Node colon = literal(":");
    const Node parts[4] = {literal("["), literal("]"), literal("{"), literal("}")};
    Node value = scalar;
    for (int depth = 0; depth < max_depth; ++depth) {
        const Node member = sequence({text, colon, value});
        const Node array = sequence({parts[0], repeat(value, comma, 0, kMaxEntries), parts[1]});
        const Node object = sequence({parts[2], repeat(member, comma, 0, kMaxEntries), parts[3]});
        value = any_of({scalar, array, object});
    }
    return value;
}

Grammar::Node Grammar::Builder::json_object(std::vector<Member> members) {
    check_members(members);
    GrammarNode node;
    node.kind = NodeKind::json_object;
    for (std::size_t i = 0; i < members.size(); ++i) {
        node.trie.insert(key_text(members[i].name), static_cast<int>(i));
        node.children.push_back(members[i].value);
        if (members[i].required) node.required |= std::uint64_t{1} << i;
    }
    const Node index = impl_->add(std::move(node));
    for (const Member& member : members) {
        if (!impl_->at(member.value).nullable) continue;
        throw Error(fmt::format("grammar: the value of member '{}' can be empty", member.name));
    }
    return index;
}

Grammar::Node Grammar::Builder::elements(Token tag, std::vector<Member> members) {
    check_members(members);
    GrammarNode node;
    node.kind = NodeKind::elements;
    node.token = tag;
    const Node opening = token(tag);
    for (std::size_t i = 0; i < members.size(); ++i) {
        const std::string& name = members[i].name;
        if (name.empty() || name[0] == '/' || name.find_first_of("<>") != std::string::npos) {
            throw Error(fmt::format(
                "grammar: '{}' cannot name an element: it is empty, holds < or >, or starts with /",
                name));
        }
        node.trie.insert("<" + name + ">", static_cast<int>(i));
        node.children.push_back(sequence({members[i].value, opening, literal("</" + name + ">")}));
        if (members[i].required) node.required |= std::uint64_t{1} << i;
    }
    node.nullable = node.required == 0;
    return impl_->add(std::move(node));
}

std::shared_ptr<const Grammar> Grammar::Builder::finish(Node root) {
    if (root < 0 || static_cast<std::size_t>(root) >= impl_->graph.nodes.size()) {
        throw Error(fmt::format("grammar: the root {} is not a node of this builder", root));
    }
    auto graph = std::make_unique<Grammar::Impl>(impl_->graph);
    graph->root = root;
    return std::make_shared<const Grammar>(std::move(graph));
}

Grammar::Grammar(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Grammar::~Grammar() = default;

GrammarState::GrammarState(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), threads_(std::make_unique<ThreadSet>()) {
    start(grammar_->impl(), *threads_);
}
GrammarState::GrammarState(const GrammarState& other)
    : grammar_(other.grammar_), threads_(std::make_unique<ThreadSet>(*other.threads_)) {}
GrammarState& GrammarState::operator=(const GrammarState& other) {
    if (this != &other) *this = GrammarState(other);
    return *this;
}
GrammarState::GrammarState(GrammarState&&) noexcept = default;
GrammarState& GrammarState::operator=(GrammarState&&) noexcept = default;
GrammarState::~GrammarState() = default;

bool GrammarState::advance(std::string_view bytes) {
    ThreadSet now = *threads_;
    ThreadSet next;
    for (const char c : bytes) {
        step(grammar_->impl(), now, static_cast<std::uint8_t>(c), next);
        if (next.empty()) return false;
        std::swap(now, next);
    }
    *threads_ = std::move(now);
    return true;
}

bool GrammarState::accepts(std::string_view bytes) const {
    return GrammarState(*this).advance(bytes);
}

bool GrammarState::advance_token(Token token) {
    ThreadSet next;
    step(grammar_->impl(), *threads_, symbol_of(token), next);
    if (next.empty()) return false;
    *threads_ = std::move(next);
    return true;
}

bool GrammarState::accepts_token(Token token) const {
    ThreadSet next;
    step(grammar_->impl(), *threads_, symbol_of(token), next);
    return !next.empty();
}

bool GrammarState::complete() const {
    return completes(grammar_->impl(), *threads_);
}

bool GrammarState::dead_end() const {
    return !takes_bytes() && !takes_token(grammar_->impl(), *threads_);
}

bool GrammarState::takes_bytes() const {
    ThreadSet next;
    for (Symbol byte = 0; byte < symbol_of(0); ++byte) {
        step(grammar_->impl(), *threads_, byte, next);
        if (!next.empty()) return true;
    }
    return false;
}

std::string GrammarState::forced() const {
    std::string bytes;
    ThreadSet now = *threads_;
    ThreadSet next;
    ThreadSet only;
    while (bytes.size() < kMaxForced && !completes(grammar_->impl(), now)) {
        int choices = 0;
        char chosen = 0;
        if (takes_token(grammar_->impl(), now)) break;
        for (Symbol byte = 0; byte < symbol_of(0) && choices < 2; ++byte) {
            step(grammar_->impl(), now, byte, next);
            if (next.empty()) continue;
            ++choices;
            chosen = static_cast<char>(byte);
            std::swap(only, next);
        }
        if (choices != 1) break;
        bytes.push_back(chosen);
        std::swap(now, only);
    }
    return bytes;
}

std::optional<Token> GrammarState::forced_token() const {
    if (complete() || takes_bytes()) return std::nullopt;
    std::optional<Token> only;
    for (const Token token : grammar_->impl().tokens) {
        if (!accepts_token(token)) continue;
        if (only) return std::nullopt;
        only = token;
    }
    return only;
}

}  // namespace skein::model
