#pragma once
// What find_files and grep look at: the tree below a path, without version control's own files.

#include "tools/workspace.h"

namespace skein::tools {

inline constexpr std::size_t kMaxEntriesSearched = 200000;

/// Does not enter .git, unless the search starts there.
inline Workspace::Tree search_tree(const Workspace& workspace, std::string_view path) {
    return workspace.walk(path, kMaxEntriesSearched, [](const Workspace::Entry& entry) {
        const std::string_view name = entry.name;
        return name == ".git" || (name.size() > 5 && name.substr(name.size() - 5) == "/.git");
    });
}

/// `name` without the start of the search, as globs see it.
inline std::string_view below(std::string_view name, std::string_view start,
                              std::string_view root) {
    if (start.substr(0, root.size()) == root) start.remove_prefix(root.size());
    while (!start.empty() && start.front() == '/') start.remove_prefix(1);
    while (!start.empty() && start.back() == '/') start.remove_suffix(1);
    if (start.empty() || start == "." || name.substr(0, start.size()) != start) return name;
    name.remove_prefix(start.size());
    while (!name.empty() && name.front() == '/') name.remove_prefix(1);
    return name;
}

}  // namespace skein::tools
