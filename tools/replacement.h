#pragma once
// The edit of edit_file as a function of bytes: find one text, put another in its place. PUBLIC.
//
// The text to find matches byte for byte, except that a line end in it (LF or CRLF) matches either.
// When some places match exactly, only those count. What is put in takes the line ends of the place
// it goes to; nothing else of the file changes, and nothing in either text has a special meaning.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

struct Replacement {
    std::optional<std::string> content;  ///< the new bytes, or nothing when `problem` says why
    std::vector<std::size_t> lines;      ///< of the places found, counted from 1
    std::string problem;
    std::string diff;  ///< first place, -old and +new lines, bounded
};

Replacement replace_text(std::string_view content, std::string_view old_text,
                         std::string_view new_text, bool replace_all);

}  // namespace skein::tools
