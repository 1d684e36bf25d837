#include "model/sampling/grammar_machine.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.h"

namespace skein::model {

namespace {

constexpr std::size_t kMaxThreads = 4096;

namespace repeat_phase {
constexpr std::uint32_t begin = 0, item = 1, separator = 2;  // which child was entered last
}
namespace element_phase {
constexpr std::uint32_t in_key = 2, value = 3;  // as of an object: they share key_step
}
namespace object_phase {
constexpr std::uint32_t begin = 0, first_key = 1, in_key = 2, value = 3, next_key = 4, ended = 5;
}

void enter(Thread& thread, int node) {
    thread.push_back({node, 0, 0, 0});
}

/// A member name inside an object. Enters the value when the name and its colon are complete.
bool key_step(const GrammarNode& node, Thread& thread, std::uint8_t byte) {
    Frame& frame = thread.back();
    const std::uint32_t from = frame.phase == object_phase::in_key ? frame.at : LiteralTrie::kRoot;
    const std::uint32_t next = node.trie.child(from, byte);
    if (next == LiteralTrie::kRoot || (node.trie.members(next) & ~frame.memo) == 0) return false;
    frame.at = next;
    frame.phase = object_phase::in_key;
    if (const int member = node.trie.value(next); member >= 0) {
        frame.memo |= std::uint64_t{1} << member;
        frame.phase = object_phase::value;
        enter(thread, node.children[static_cast<std::size_t>(member)]);
    }
    return true;
}

bool object_step(const GrammarNode& node, Thread& thread, std::uint8_t byte) {
    Frame& frame = thread.back();
    const bool may_close = (node.required & ~frame.memo) == 0;
    const bool names_left = (node.trie.members(LiteralTrie::kRoot) & ~frame.memo) != 0;
    switch (frame.phase) {
        case object_phase::begin:
            frame.phase = object_phase::first_key;
            return byte == '{';
        case object_phase::first_key:
        case object_phase::value:
            if (byte == '}' && may_close) {
                frame.phase = object_phase::ended;
                return true;
            }
            if (frame.phase == object_phase::first_key) return key_step(node, thread, byte);
            frame.phase = object_phase::next_key;
            return byte == ',' && names_left;
        default:
            return key_step(node, thread, byte);
    }
}

class Machine {
  public:
    Machine(const Grammar::Impl& grammar, Symbol symbol, ThreadSet& out)
        : grammar_(grammar), symbol_(symbol), is_byte_(symbol < symbol_of(0)), out_(out) {}

    /// Adds every thread that `thread` can become by consuming the symbol. Uses `thread` up.
    void feed(Thread& thread) {
        while (!thread.empty()) {
            const GrammarNode& node = grammar_.nodes[static_cast<std::size_t>(thread.back().node)];
            bool goes_on = false;
            switch (node.kind) {
                case NodeKind::literal:
                    goes_on = literal(node, thread);
                    break;
                case NodeKind::token:
                    goes_on = token(node, thread);
                    break;
                case NodeKind::choice:
                    goes_on = choice(node, thread);
                    break;
                case NodeKind::raw_text:
                    goes_on = raw_text(node, thread);
                    break;
                case NodeKind::json_string:
                    goes_on = string(node, thread);
                    break;
                case NodeKind::json_number:
                    goes_on = number(node, thread);
                    break;
                case NodeKind::json_object:
                    goes_on = object(node, thread);
                    break;
                case NodeKind::elements:
                    goes_on = elements(node, thread);
                    break;
                case NodeKind::any_of:
                    goes_on = any_of(node, thread);
                    break;
                case NodeKind::sequence:
                    goes_on = sequence(node, thread);
                    break;
                case NodeKind::repeat:
                    goes_on = repeat(node, thread);
                    break;
            }
            if (!goes_on) return;
        }
    }

  private:
    // Each of these looks at the top frame and returns whether the byte is still to be consumed by
    // what is on top now (the parent after a pop, a child after an entry).

    static bool pop(Thread& thread) {
        thread.pop_back();
        return true;
    }

    bool literal(const GrammarNode& node, Thread& thread) {
        Frame& frame = thread.back();
        if (frame.at == node.bytes.size()) return pop(thread);
        if (static_cast<std::uint8_t>(node.bytes[frame.at]) != symbol_) return false;
        ++frame.at;
        out_.add(thread);
        return false;
    }

    bool token(const GrammarNode& node, Thread& thread) {
        if (thread.back().at != 0) return pop(thread);
        if (symbol_ != symbol_of(node.token)) return false;
        thread.back().at = 1;
        out_.add(thread);
        return false;
    }

    bool choice(const GrammarNode& node, Thread& thread) {
        const std::uint32_t here = thread.back().at;
        const std::uint32_t next = is_byte_ ? node.trie.child(here, byte()) : LiteralTrie::kRoot;
        if (next != LiteralTrie::kRoot) {
            thread.back().at = next;
            out_.add(thread);
        }
        return node.trie.value(here) >= 0 && pop(thread);
    }

    bool string(const GrammarNode& node, Thread& thread) {
        if (string_ended(thread.back())) return pop(thread);
        if (is_byte_ && string_step(node.string, thread.back(), byte())) out_.add(thread);
        return false;
    }

    bool raw_text(const GrammarNode& node, Thread& thread) {
        const bool may_end = raw_may_end(node.raw, thread.back());
        if (is_byte_ && raw_step(node.raw, thread.back(), byte())) out_.add(thread);
        return may_end && pop(thread);
    }

    bool number(const GrammarNode& node, Thread& thread) {
        const bool may_end = number_may_end(node.number, thread.back());
        Frame longer = thread.back();
        if (is_byte_ && number_step(node.number, longer, byte())) {
            thread.back() = longer;
            out_.add(thread);
        }
        return may_end && pop(thread);
    }

    bool object(const GrammarNode& node, Thread& thread) {
        if (thread.back().phase == object_phase::ended) return pop(thread);
        if (is_byte_ && object_step(node, thread, byte())) out_.add(thread);
        return false;
    }

    bool elements(const GrammarNode& node, Thread& thread) {
        Frame& frame = thread.back();
        if (frame.phase == element_phase::in_key) {
            if (is_byte_ && key_step(node, thread, byte())) out_.add(thread);
            return false;
        }
        const bool names_left = (node.trie.members(LiteralTrie::kRoot) & ~frame.memo) != 0;
        if (symbol_ == symbol_of(node.token) && names_left) {
            // The same token may also close what stands around: only the next byte tells.
            const Frame before = frame;
            frame.phase = element_phase::in_key;
            frame.at = LiteralTrie::kRoot;
            out_.add(thread);
            frame = before;
        }
        return (node.required & ~frame.memo) == 0 && pop(thread);
    }

    bool any_of(const GrammarNode& node, Thread& thread) {
        thread.pop_back();
        for (const int child : node.children) {
            Thread branch = thread;
            enter(branch, child);
            feed(branch);
        }
        return false;
    }

    bool sequence(const GrammarNode& node, Thread& thread) {
        Frame& frame = thread.back();
        if (frame.at == node.children.size()) return pop(thread);
        const int child = node.children[frame.at++];
        enter(thread, child);
        return true;
    }

    bool repeat(const GrammarNode& node, Thread& thread) {
        Frame& frame = thread.back();  // memo counts items, the one entered included
        const int count = static_cast<int>(frame.memo);
        if (frame.phase != repeat_phase::separator) {
            if (count >= node.min) {
                Thread ended(thread.begin(), thread.end() - 1);
                feed(ended);
            }
            if (node.max >= 0 && count >= node.max) return false;
        }
        const bool separator_next = frame.phase == repeat_phase::item;
        frame.phase = separator_next ? repeat_phase::separator : repeat_phase::item;
        if (!separator_next) ++frame.memo;
        enter(thread, node.children[separator_next ? 1 : 0]);
        return true;
    }

    std::uint8_t byte() const { return static_cast<std::uint8_t>(symbol_); }

    const Grammar::Impl& grammar_;
    const Symbol symbol_;
    const bool is_byte_;
    ThreadSet& out_;
};

/// Whether the top frame may end without another byte.
bool may_end(const Grammar::Impl& grammar, const Frame& frame) {
    const GrammarNode& node = grammar.nodes[static_cast<std::size_t>(frame.node)];
    switch (node.kind) {
        case NodeKind::literal:
            return frame.at == node.bytes.size();
        case NodeKind::token:
            return frame.at != 0;
        case NodeKind::choice:
            return node.trie.value(frame.at) >= 0;
        case NodeKind::raw_text:
            return raw_may_end(node.raw, frame);
        case NodeKind::json_string:
            return string_ended(frame);
        case NodeKind::json_number:
            return number_may_end(node.number, frame);
        case NodeKind::json_object:
            return frame.phase == object_phase::ended;
        case NodeKind::elements:
            return frame.phase != element_phase::in_key && (node.required & ~frame.memo) == 0;
        case NodeKind::any_of:
            return node.nullable;
        case NodeKind::sequence:
            return std::all_of(
                node.children.begin() + frame.at, node.children.end(),
                [&](int child) { return grammar.nodes[static_cast<std::size_t>(child)].nullable; });
        case NodeKind::repeat:
            return frame.phase != repeat_phase::separator &&
                   static_cast<int>(frame.memo) >= node.min;
    }
    return false;
}

}  // namespace

void LiteralTrie::insert(std::string_view text, int value) {
    const std::uint64_t bit = value < 64 ? std::uint64_t{1} << value : 0;
    std::uint32_t node = kRoot;
    nodes_[node].members |= bit;
    for (const char c : text) {
        const auto byte = static_cast<std::uint8_t>(c);
        std::uint32_t next = child(node, byte);
        if (next == kRoot) {
            next = static_cast<std::uint32_t>(nodes_.size());
            nodes_.push_back({byte, -1, 0, nodes_[node].first_child, 0});
            nodes_[node].first_child = next;
        }
        node = next;
        nodes_[node].members |= bit;
    }
    nodes_[node].value = value;
}

std::uint32_t LiteralTrie::child(std::uint32_t node, std::uint8_t byte) const {
    std::uint32_t next = nodes_[node].first_child;
    while (next != kRoot && nodes_[next].byte != byte) next = nodes_[next].next_sibling;
    return next;
}

void ThreadSet::add(const Thread& thread) {
    if (std::find(begin(), end(), thread) != end()) return;
    if (size_ == kMaxThreads) {
        throw Error(
            fmt::format("grammar: the text can be read in more than {} ways; make its "
                        "alternatives start differently",
                        kMaxThreads));
    }
    if (size_ == threads_.size()) threads_.emplace_back();
    threads_[size_++] = thread;
}

void start(const Grammar::Impl& grammar, ThreadSet& state) {
    state.clear();
    state.add({Frame{grammar.root, 0, 0, 0}});
}

void step(const Grammar::Impl& grammar, const ThreadSet& from, Symbol symbol, ThreadSet& to) {
    to.clear();
    Machine machine(grammar, symbol, to);
    for (const Thread& thread : from) {
        to.scratch() = thread;
        machine.feed(to.scratch());
    }
}

bool completes(const Grammar::Impl& grammar, const ThreadSet& state) {
    return std::any_of(state.begin(), state.end(), [&](const Thread& thread) {
        return std::all_of(thread.rbegin(), thread.rend(),
                           [&](const Frame& frame) { return may_end(grammar, frame); });
    });
}

int free_characters(const Grammar::Impl& grammar, const ThreadSet& state) {
    int most = 0;
    for (const Thread& thread : state) {
        if (thread.empty()) continue;
        const GrammarNode& node = grammar.nodes[static_cast<std::size_t>(thread.back().node)];
        if (node.kind == NodeKind::json_string) {
            most = std::max(most, string_free_characters(node.string, thread.back()));
        } else if (node.kind == NodeKind::raw_text) {
            most = std::max(most, raw_free_characters(node.raw, thread.back()));
        }
    }
    return most;
}

}  // namespace skein::model
