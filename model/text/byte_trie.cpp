#include "model/text/byte_trie.h"

#include <algorithm>

namespace skein::model {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> entries) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::size_t> path;  // the nodes of the previous entry, from depth 1 on
    std::string_view previous;
    const auto leave = [&](std::size_t depth) {
        for (; path.size() > depth; path.pop_back()) {
            nodes_[path.back()].subtree = static_cast<std::uint32_t>(nodes_.size() - path.back());
        }
    };
    for (const auto& [text, value] : entries) {
        const auto [end, unused] =
            std::mismatch(text.begin(), text.end(), previous.begin(), previous.end());
        const auto common = static_cast<std::size_t>(end - text.begin());
        if (common == text.size()) continue;  // empty, or equal to the entry before
        leave(common);
        for (std::size_t i = common; i < text.size(); ++i) {
            path.push_back(nodes_.size());
            nodes_.push_back({static_cast<std::uint8_t>(text[i]), -1, 1});
        }
        nodes_.back().value = value;
        previous = text;
    }
    leave(0);
}

std::optional<ByteTrie::Match> ByteTrie::longest_prefix(std::string_view text) const {
    std::optional<Match> best;
    std::size_t begin = 0;
    std::size_t end = nodes_.size();
    for (std::size_t depth = 0; depth < text.size(); ++depth) {
        const auto byte = static_cast<std::uint8_t>(text[depth]);
        while (begin < end && nodes_[begin].byte != byte) begin += nodes_[begin].subtree;
        if (begin >= end) break;
        const Node& node = nodes_[begin];
        if (node.value >= 0) best = Match{node.value, depth + 1};
        end = begin + node.subtree;
        ++begin;
    }
    return best;
}

}  // namespace skein::model
