#pragma once
// Byte-level grammars for constrained decoding: literals, choices, JSON values. PUBLIC.
//
// A Grammar is an immutable graph of nodes; a GrammarState is a cursor over it, cheap to copy, fed
// byte by byte. Tokens are checked by their bytes, so a token may span several grammar elements. A
// control token is an element of its own, by id: no bytes equal it, so text cannot imitate it.
// Every sentence is finite: strings, numbers and nesting are capped, and no reachable state is
// stuck.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/tokenizer.h"
#include "model/token.h"

namespace skein::model {

/// A JSON string: valid UTF-8 and every escape except those of surrogates. Units: characters.
struct JsonStringLimits {
    int min_chars = 0;
    int max_chars = 4096;
};

/// Text as it is: valid UTF-8 of any characters, up to whatever else may follow. Units: characters.
struct RawTextLimits {
    int min_chars = 0;
    int max_chars = 4096;
};

/// A JSON number. Bounds are inclusive; a bounded number that is not an integer is written without
/// exponent, with at most 6 fraction digits and no zero at their end, and lies within +-9e12.
struct JsonNumberLimits {
    bool integer = false;
    std::optional<std::int64_t> minimum = {}, maximum = {};      ///< of an integer
    std::optional<double> real_minimum = {}, real_maximum = {};  ///< of any other number
};

class Grammar {
  public:
    using Node = int;  ///< index of a node in the builder

    /// Builds a grammar bottom up. Every method returns a node usable in later calls.
    /// Throws (all methods): Error when no text could match, or a node is not of this builder.
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
        /// Items may not be able to be empty. max < 0: unbounded.
        Node repeat(Node item, Node separator, int min, int max);
        /// One control token. Requires: id >= 0.
        Node token(Token id);
        Node raw_text(RawTextLimits limits);
        Node json_string(JsonStringLimits limits);
        Node json_number(JsonNumberLimits limits);
        /// Any JSON value, compact, with at most `max_depth` arrays and objects inside each other
        /// and at most 64 entries in each.
        Node json_value(int max_depth);
        struct Member {
            std::string name;
            Node value;
            bool required;
        };
        /// At most 64 members in any order, each at most once; required ones must appear.
        Node json_object(std::vector<Member> members);
        /// The same as elements, without brackets of their own: `tag` `<name>` value `tag`
        /// `</name>` each. A value may be empty. Names hold no `<` or `>` and do not start with
        /// `/`.
        Node elements(Token tag, std::vector<Member> members);
        /// Throws: Error when the graph is larger or deeper than its caps.
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

class ThreadSet;

/// A position inside a grammar. Copies are independent.
class GrammarState {
  public:
    explicit GrammarState(std::shared_ptr<const Grammar> grammar);
    GrammarState(const GrammarState& other);
    GrammarState& operator=(const GrammarState& other);
    GrammarState(GrammarState&&) noexcept;
    GrammarState& operator=(GrammarState&&) noexcept;
    ~GrammarState();

    /// Moves over `bytes`; false (and unchanged) when they are not a legal continuation.
    bool advance(std::string_view bytes);
    bool accepts(std::string_view bytes) const;
    /// The same for a control token of the grammar.
    bool advance_token(Token token);
    bool accepts_token(Token token) const;
    bool complete() const;  ///< the text so far is a whole sentence
    bool dead_end() const;  ///< nothing more may follow
    /// True when bytes may follow, and not only control tokens or nothing.
    bool takes_bytes() const;
    /// The bytes that must come next, when only one continuation exists; empty otherwise.
    /// At most 4096 of them.
    std::string forced() const;
    /// The control token that must come next, when nothing else may.
    std::optional<Token> forced_token() const;

    const Grammar::Impl& grammar() const { return grammar_->impl(); }
    const ThreadSet& threads() const { return *threads_; }

  private:
    std::shared_ptr<const Grammar> grammar_;
    std::unique_ptr<ThreadSet> threads_;
};

}  // namespace skein::model
