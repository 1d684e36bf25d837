#pragma once
// Text files as bytes: lines, line ends, byte-order marks. Nothing here transcodes.
//
// A line ends with LF or CRLF; a lone CR is data. The piece after the last line end is a line only
// when it is not empty, so "a\nb\n" and "a\nb" both have two lines.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

inline constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

struct LineEnds {
    std::size_t lf = 0, crlf = 0;
    bool final_newline = true;  ///< also for the empty file
};
LineEnds count_line_ends(std::string_view bytes);

/// Number of lines.
std::size_t count_lines(std::string_view bytes);

/// A NUL byte anywhere means that it is no text.
bool is_binary(std::string_view bytes);

/// Views of the first lines without their line ends (LF or CRLF).
std::vector<std::string_view> split_lines(std::string_view bytes,
                                          std::size_t max_lines = static_cast<std::size_t>(-1));

/// The number of the line that holds the byte at `position`, counted from 1.
std::size_t line_number(std::string_view bytes, std::size_t position);

/// Notes for a reader, such as "CRLF line ends, byte-order mark, not UTF-8"; empty for plain text.
std::string describe_text(std::string_view bytes);

/// "1 line", "3 lines".
std::string counted(std::size_t n, std::string_view noun);

}  // namespace skein::tools
