#pragma once
// Byte-level grammars for constrained decoding: literals, choices, JSON values. PUBLIC.
//
// A Grammar is an immutable graph of nodes; a GrammarState is a cursor over it, cheap to copy, fed
// byte by byte. Tokens are checked by their bytes, so a token may span several grammar elements.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/tokenizer.h"
#include "model/token.h"

namespace skein::model {

struct JsonStringLimits {
    int min_chars = 0;
    int max_chars = 4096;
};

/// A JSON number's shape. Bounds apply to integers; both inclusive.
struct JsonNumberLimits {
    bool integer = false;
    bool has_minimum = false, has_maximum = false;
    std::int64_t minimum = 0, maximum = 0;
};

class Grammar {
  public:
    using Node = int;  ///< index of a node in the builder

    /// Builds a grammar bottom up. Every method returns a node usable in later calls.
    class Builder {
      public:
        Builder();
        ~Builder();
        Node literal(std::string bytes);
        /// One of several literals, as a trie; none may be empty.
        Node choice(std::vector<std::string> literals);
        Node any_of(std::vector<Node> alternatives);
        Node sequence(std::vector<Node> parts);
        Node optional(Node part);
        Node repeat(Node item, Node separator, int min, int max);  ///< max < 0: unbounded
        Node json_string(JsonStringLimits limits);
        Node json_number(JsonNumberLimits limits);
        Node json_value(int max_depth);  ///< any JSON value, compact, depth bounded
        /// Members in any order, each at most once; required ones must appear.
        struct Member { std::string name; Node value; bool required; };
        Node json_object(std::vector<Member> members);
        /// Throws: Error when the graph is larger than its cap.
        std::shared_ptr<const Grammar> finish(Node root);
      private:
        struct Impl;
        std::unique_ptr<Impl> impl_;
    };

    struct Impl;
    explicit Grammar(std::unique_ptr<const Impl> impl);
    ~Grammar();
    const Impl& impl() const { return *impl_; }

  private:
    std::unique_ptr<const Impl> impl_;
};

/// A position inside a grammar. Copies are independent.
class GrammarState {
  public:
    explicit GrammarState(std::shared_ptr<const Grammar> grammar);
    /// Moves over `bytes`; false (and unchanged) when they are not a legal continuation.
    bool advance(std::string_view bytes);
    bool accepts(std::string_view bytes) const;
    bool complete() const;  ///< the text so far is a whole sentence
    bool dead_end() const;  ///< complete, and nothing more may follow
    /// The bytes that must come next, when only one continuation exists; empty otherwise.
    std::string forced() const;

  private:
    std::shared_ptr<const Grammar> grammar_;
    std::vector<std::vector<int>> stacks_;  // the owner of grammar.cpp may replace this layout
};

}  // namespace skein::model
