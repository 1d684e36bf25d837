#pragma once
// The automaton behind Grammar: an immutable graph of nodes and a machine that walks it byte by
// byte. Internal to this folder.
//
// A thread is a stack of frames, one per node entered and not yet left, outermost first; a state is
// a set of threads, one for each way the bytes so far can be read. JSON is deterministic, so there
// is nearly always one. A frame on top either consumes a symbol (a byte, or a control token by its
// id), or has ended and is popped, or enters a child. Only the grammar's own depth nests, never the
// input's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/sampling/grammar.h"

namespace skein::model {

/// A byte, or a token above all bytes.
using Symbol = std::int64_t;
constexpr Symbol symbol_of(Token token) {
    return Symbol{256} + token;
}

/// Literals as a tree, so that a choice among thousands costs one step a byte.
class LiteralTrie {
  public:
    static constexpr std::uint32_t kRoot = 0;

    LiteralTrie() : nodes_(1) {}
    /// Requires: text is not empty; value in 0..63 when members are asked for.
    void insert(std::string_view text, int value);
    /// The child for `byte`, or kRoot when there is none.
    std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;
    /// The value of the literal that ends here, or -1.
    int value(std::uint32_t node) const { return nodes_[node].value; }
    /// Bits of the values at and below this node, for values up to 63.
    std::uint64_t members(std::uint32_t node) const { return nodes_[node].members; }
    std::size_t size() const { return nodes_.size(); }

  private:
    struct Node {
        std::uint8_t byte = 0;
        int value = -1;
        std::uint32_t first_child = 0, next_sibling = 0;
        std::uint64_t members = 0;
    };
    std::vector<Node> nodes_;
};

enum class NodeKind : std::uint8_t {
    literal,
    token,
    choice,
    any_of,
    sequence,
    repeat,
    raw_text,
    json_string,
    json_number,
    json_object,
    elements
};

struct GrammarNode {
    NodeKind kind = NodeKind::literal;
    bool nullable = false;  ///< may stand for no bytes at all
    int depth = 1;
    std::string bytes;          ///< literal
    Token token = -1;           ///< token; elements: in front of every tag
    std::vector<int> children;  ///< alternatives, parts, {item, separator}, member values
    int min = 0, max = 0;       ///< repeat; max < 0: unbounded
    RawTextLimits raw;
    JsonStringLimits string;
    JsonNumberLimits number;
    LiteralTrie trie;            ///< choice: the literals; members: `"name":` or `<name>`
    std::uint64_t required = 0;  ///< object, elements: members that must appear
};

struct Grammar::Impl {
    std::vector<GrammarNode> nodes;
    std::vector<Token> tokens;  ///< control tokens of the nodes, each once
    int root = 0;
};

/// One entered node. What `phase`, `at` and `memo` mean is the business of the node's kind.
struct Frame {
    int node = 0;
    std::uint32_t phase = 0;
    std::uint32_t at = 0;
    std::uint64_t memo = 0;

    bool operator==(const Frame&) const = default;
};

using Thread = std::vector<Frame>;

/// A set of threads that keeps its memory when it is cleared.
class ThreadSet {
  public:
    void clear() { size_ = 0; }
    bool empty() const { return size_ == 0; }
    /// Adds a copy unless an equal thread is there. Throws: Error past 4096 threads.
    void add(const Thread& thread);
    /// A buffer for whoever fills the set; its contents mean nothing.
    Thread& scratch() { return scratch_; }
    const Thread* begin() const { return threads_.data(); }
    const Thread* end() const { return threads_.data() + size_; }

  private:
    std::vector<Thread> threads_;
    Thread scratch_;
    std::size_t size_ = 0;
};

/// The state before the first byte.
void start(const Grammar::Impl& grammar, ThreadSet& state);
/// The state after one more symbol; empty when it is not legal. Requires: &from != &to.
void step(const Grammar::Impl& grammar, const ThreadSet& from, Symbol symbol, ThreadSet& to);
/// Whether the bytes so far are a whole sentence.
bool completes(const Grammar::Impl& grammar, const ThreadSet& state);
/// How many more plain characters (valid UTF-8, no control, quote or backslash) are certainly
/// legal.
int free_characters(const Grammar::Impl& grammar, const ThreadSet& state);

/// Consumes a byte of a JSON string in a frame of its own; false when it is not legal.
bool string_step(const JsonStringLimits& limits, Frame& frame, std::uint8_t byte);
bool string_ended(const Frame& frame);
int string_free_characters(const JsonStringLimits& limits, const Frame& frame);

/// The same for raw text, which ends only when something else follows.
bool raw_step(const RawTextLimits& limits, Frame& frame, std::uint8_t byte);
bool raw_may_end(const RawTextLimits& limits, const Frame& frame);
int raw_free_characters(const RawTextLimits& limits, const Frame& frame);

/// The same for a JSON number, which ends only when something else follows.
bool number_step(const JsonNumberLimits& limits, Frame& frame, std::uint8_t byte);
bool number_may_end(const JsonNumberLimits& limits, const Frame& frame);
/// Whether any text at all lies within the limits.
bool number_possible(const JsonNumberLimits& limits);

}  // namespace skein::model
