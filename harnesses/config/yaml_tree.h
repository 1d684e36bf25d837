#pragma once
// YAML text to a tree that keeps what a configuration needs: the exact characters of every scalar,
// whether it was quoted, and where it stands. yaml-cpp reads the text; its own tree loses repeated
// keys and turns words into values, so we build ours from its events.
//
// Accepted: one document, block and flow style, every scalar style, anchors, aliases and merge keys
// ("<<"; the mapping's own keys win, then the bases in order). Refused with a position: repeated
// keys, keys that are no text, tags, several documents, aliases of themselves, more than 50'000
// nodes once aliases are written out, nesting beyond 64, text that is not UTF-8, files beyond 1
// MiB.

#include <string>
#include <string_view>
#include <vector>

#include "harnesses/config/config.h"

namespace skein::harnesses {

struct YamlEntry;

struct YamlNode {
    enum class Kind { null, scalar, sequence, map };
    Kind kind = Kind::null;
    std::string text;          ///< of a scalar
    bool quoted = false;       ///< a scalar in quotes or block style: text, whatever it looks like
    int line = 0, column = 0;  ///< from 1
    std::vector<YamlNode> items;
    std::vector<YamlEntry> entries;  ///< of a map, in the order written

    static YamlNode plain(std::string text);
    static YamlNode string(std::string text);
    const YamlNode* find(std::string_view key) const;
};

struct YamlEntry {
    YamlNode key, value;
};

/// "a mapping", "a list", "text", "nothing".
std::string_view describe(YamlNode::Kind kind);

/// Throws: ConfigError.
YamlNode parse_yaml(std::string_view text, const std::string& name);

/// Block style, two spaces a level, a final newline; strings in double quotes.
std::string print_yaml(const YamlNode& node);

}  // namespace skein::harnesses
