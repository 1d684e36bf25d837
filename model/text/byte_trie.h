#pragma once
// Byte strings with values, as one array of nodes in depth-first order: a node's first child is the
// next node, its next sibling lies `subtree` nodes further. A walk touches memory forwards only.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace skein::model {

class ByteTrie {
  public:
    struct Node {
        std::uint8_t byte = 0;
        std::int32_t value = -1;    ///< -1: no string ends here
        std::uint32_t subtree = 1;  ///< nodes of the subtree, this one included
    };
    struct Match {
        std::int32_t value = -1;
        std::size_t length = 0;
    };

    ByteTrie() = default;
    /// Requires: values >= 0. Of equal strings the first in `entries` is kept; empty ones are left
    /// out.
    explicit ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> entries);

    /// All nodes but the root, children in byte order; the root's children begin at index 0.
    const std::vector<Node>& nodes() const { return nodes_; }
    /// The longest entry that `text` starts with.
    std::optional<Match> longest_prefix(std::string_view text) const;

  private:
    std::vector<Node> nodes_;
};

}  // namespace skein::model
