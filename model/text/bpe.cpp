#include "model/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "model/error.h"

namespace skein::model {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kFree = std::numeric_limits<std::uint64_t>::max();

std::uint64_t pair_of(Token left, Token right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
           static_cast<std::uint32_t>(right);
}

std::string printable(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        const bool plain = c > ' ' && c < 0x7F && c != '\\';
        out += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace

void Bpe::MergeTable::reserve(std::size_t n_merges) {
    slots_.assign(std::bit_ceil(2 * n_merges + 2), Merge{kFree, 0, 0});
}

std::size_t Bpe::MergeTable::slot_of(std::uint64_t pair) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = pair * 0x9E3779B97F4A7C15ULL;  // Fibonacci hashing
    std::size_t slot = static_cast<std::size_t>(hash ^ (hash >> 32)) & mask;
    while (slots_[slot].pair != kFree && slots_[slot].pair != pair) slot = (slot + 1) & mask;
    return slot;
}

void Bpe::MergeTable::insert(Merge merge) {
    Merge& slot = slots_[slot_of(merge.pair)];
    if (slot.pair == kFree) slot = merge;
}

const Bpe::MergeTable::Merge* Bpe::MergeTable::find(Token left, Token right) const {
    const Merge& slot = slots_[slot_of(pair_of(left, right))];
    return slot.pair == kFree ? nullptr : &slot;
}

Bpe::Bpe(const Vocabulary& vocabulary)
    : ignore_merges_(vocabulary.ignore_merges), token_of_byte_(256, -1) {
    const std::size_t n = vocabulary.texts.size();
    token_of_text_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        const TokenType type = vocabulary.types[i];
        if (type != TokenType::normal && type != TokenType::byte) continue;
        const std::string& text = vocabulary.texts[i];
        if (!text.empty()) token_of_text_.try_emplace(text, static_cast<Token>(i));
    }
    for (std::size_t b = 0; b < 256; ++b) {
        const char byte = static_cast<char>(b);
        const auto found = token_of_text_.find(std::string_view(&byte, 1));
        if (found != token_of_text_.end()) token_of_byte_[b] = found->second;
    }
    merges_.reserve(vocabulary.merges.size());
    for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
        const std::string& left = vocabulary.merges[rank].first;
        const std::string& right = vocabulary.merges[rank].second;
        const auto token_of = [&](const std::string& text, const char* role) {
            const auto found = token_of_text_.find(text);
            if (found != token_of_text_.end()) return found->second;
            throw Error(
                fmt::format("tokenizer: merge {} ('{}' + '{}'): the {} '{}' is not a normal token",
                            rank, printable(left), printable(right), role, printable(text)));
        };
        const Token result = token_of(left + right, "result");
        merges_.insert({pair_of(token_of(left, "left part"), token_of(right, "right part")),
                        static_cast<std::uint32_t>(rank), result});
    }
    // Most pieces of ordinary text are whole tokens. Which tokens their own bytes merge into is a
    // property of the tables, so knowing it here saves merging them again and again.
    whole_.assign(n, false);
    BpeScratch scratch;
    Tokens out;
    for (const auto& [text, token] : token_of_text_) {
        out.clear();
        merge_all(text, scratch, out);
        whole_[static_cast<std::size_t>(token)] = out.size() == 1 && out[0] == token;
    }
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, Tokens& out) const {
    const auto found = token_of_text_.find(piece);
    if (found != token_of_text_.end() &&
        (ignore_merges_ || whole_[static_cast<std::size_t>(found->second)])) {
        out.push_back(found->second);
        return;
    }
    merge_all(piece, scratch, out);
}

/// Recomputes the rank of the pair that starts at `position` and queues it.
void Bpe::offer(BpeScratch& scratch, std::uint32_t position) const {
    BpeScratch::Symbol& symbol = scratch.symbols[position];
    symbol.rank = kNone;
    if (symbol.next == kNone) return;
    const auto* merge = merges_.find(symbol.token, scratch.symbols[symbol.next].token);
    if (merge == nullptr) return;
    symbol.rank = merge->rank;
    scratch.heap.push_back((static_cast<std::uint64_t>(merge->rank) << 32) | position);
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
    ++scratch.heap_steps;
}

void Bpe::merge_all(std::string_view piece, BpeScratch& scratch, Tokens& out) const {
    if (piece.size() >= kNone) {
        throw Error(fmt::format("tokenizer: a piece of {} bytes; expected fewer than 2^32 - 1",
                                piece.size()));
    }
    auto& symbols = scratch.symbols;
    auto& heap = scratch.heap;
    symbols.clear();
    heap.clear();
    for (const char c : piece) {
        const Token token = token_of_byte_[static_cast<unsigned char>(c)];
        if (token < 0) {
            ++scratch.dropped_bytes;
            continue;
        }
        const auto position = static_cast<std::uint32_t>(symbols.size());
        symbols.push_back({token, position == 0 ? kNone : position - 1, position + 1, kNone});
    }
    if (symbols.empty()) return;
    symbols.back().next = kNone;
    for (std::uint32_t i = 0; i < symbols.size(); ++i) offer(scratch, i);
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const auto rank = static_cast<std::uint32_t>(heap.back() >> 32);
        const auto position = static_cast<std::uint32_t>(heap.back());
        heap.pop_back();
        ++scratch.heap_steps;
        BpeScratch::Symbol& left = symbols[position];
        if (left.rank != rank) continue;  // queued before a neighbour merged
        BpeScratch::Symbol& right = symbols[left.next];
        left.token = merges_.find(left.token, right.token)->result;
        right.rank = kNone;
        left.next = right.next;
        if (right.next != kNone) symbols[right.next].previous = position;
        offer(scratch, position);
        if (left.previous != kNone) offer(scratch, left.previous);
    }
    for (std::uint32_t i = 0; i != kNone; i = symbols[i].next) out.push_back(symbols[i].token);
}

}  // namespace skein::model
