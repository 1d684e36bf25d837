#include "tools/pattern.h"

#include <algorithm>

#include "tools/pattern_parser.h"

namespace skein::tools {
namespace {

constexpr std::size_t kMaxCachedSets = 2000;  // about 2 MB; a full cache is dropped and built anew
constexpr int kEnd = 256;

bool is_word(int byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_';
}

}  // namespace

Pattern::Pattern(std::string_view expression, bool ignore_case) {
    PatternProgram program = parse_pattern(expression, ignore_case);
    states_ = std::move(program.states);
    sets_ = std::move(program.sets);
    start_ = program.start;
}

Pattern Pattern::literal(std::string_view text, bool ignore_case) {
    return Pattern(escape_pattern(text), ignore_case);
}

std::int32_t Pattern::add_set(std::vector<std::uint32_t> states, Before before) {
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
    auto key = std::make_pair(std::move(states), before);
    const auto known = index_.find(key);
    if (known != index_.end()) return known->second;
    auto set = std::make_unique<CachedSet>();
    set->states = key.first;
    set->before = before;
    set->next.fill(kUnknown);
    cache_.push_back(std::move(set));
    const auto id = static_cast<std::int32_t>(cache_.size() - 1);
    index_.emplace(std::move(key), id);
    return id;
}

// Resolves empty moves now that both neighbours of the position are known, then consumes `byte`.
std::int32_t Pattern::advance(std::int32_t from, int byte) {
    const CachedSet& set = *cache_[static_cast<std::size_t>(from)];
    const bool edge = (set.before == Before::word) != (byte != kEnd && is_word(byte));
    std::vector<std::uint32_t> work = set.states;
    work.push_back(start_);  // a match may begin anywhere
    std::vector<bool> seen(states_.size(), false);
    std::vector<std::uint32_t> next;
    while (!work.empty()) {
        const std::uint32_t id = work.back();
        work.pop_back();
        if (seen[id]) continue;
        seen[id] = true;
        const State& state = states_[id];
        bool pass = false;
        switch (state.kind) {
            case State::Kind::match:
                return kMatch;
            case State::Kind::bytes:
                if (byte != kEnd && sets_[state.set][static_cast<std::size_t>(byte)]) {
                    next.push_back(state.next);
                }
                break;
            case State::Kind::split:
                work.push_back(state.other);
                pass = true;
                break;
            case State::Kind::line_start:
                pass = set.before == Before::start;
                break;
            case State::Kind::line_end:
                pass = byte == kEnd;
                break;
            case State::Kind::word_edge:
                pass = edge;
                break;
            case State::Kind::no_word_edge:
                pass = !edge;
                break;
        }
        if (pass) work.push_back(state.next);
    }
    return add_set(std::move(next), is_word(byte) ? Before::word : Before::other);
}

std::size_t Pattern::find_end(std::string_view line) {
    if (cache_.size() > kMaxCachedSets) {
        cache_.clear();
        index_.clear();
    }
    std::int32_t current = add_set({}, Before::start);
    for (std::size_t i = 0; i <= line.size(); ++i) {
        const int byte = i < line.size() ? static_cast<unsigned char>(line[i]) : kEnd;
        const auto column = static_cast<std::size_t>(byte);
        std::int32_t next = cache_[static_cast<std::size_t>(current)]->next[column];
        if (next == kUnknown) {
            next = advance(current, byte);
            cache_[static_cast<std::size_t>(current)]->next[column] = next;
            if (cache_.size() > kMaxCachedSets && next != kMatch) {
                const CachedSet keep = *cache_[static_cast<std::size_t>(next)];
                cache_.clear();
                index_.clear();
                next = add_set(keep.states, keep.before);
            }
        }
        if (next == kMatch) return i;
        current = next;
    }
    return npos;
}

std::string escape_pattern(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

}  // namespace skein::tools
