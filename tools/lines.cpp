#include "tools/lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/text.h"

namespace skein::tools {

LineEnds count_line_ends(std::string_view bytes) {
    LineEnds ends;
    for (std::size_t at = bytes.find('\n'); at != bytes.npos; at = bytes.find('\n', at + 1)) {
        ++(at > 0 && bytes[at - 1] == '\r' ? ends.crlf : ends.lf);
    }
    ends.final_newline = bytes.empty() || bytes.back() == '\n';
    return ends;
}

std::size_t count_lines(std::string_view bytes) {
    const auto newlines = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    return newlines + (bytes.empty() || bytes.back() == '\n' ? 0 : 1);
}

bool is_binary(std::string_view bytes) {
    return bytes.find('\0') != bytes.npos;
}

std::vector<std::string_view> split_lines(std::string_view bytes, std::size_t max_lines) {
    std::vector<std::string_view> lines;
    while (!bytes.empty() && lines.size() < max_lines) {
        const std::size_t end = std::min(bytes.find('\n'), bytes.size());
        std::string_view line = bytes.substr(0, end);
        if (end < bytes.size() && !line.empty() && line.back() == '\r') line.remove_suffix(1);
        lines.push_back(line);
        bytes.remove_prefix(std::min(end + 1, bytes.size()));
    }
    return lines;
}

std::size_t line_number(std::string_view bytes, std::size_t position) {
    const std::string_view before = bytes.substr(0, position);
    return static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
}

std::string describe_text(std::string_view bytes) {
    std::vector<std::string> notes;
    const LineEnds ends = count_line_ends(bytes);
    if (ends.crlf > 0 && ends.lf == 0) notes.emplace_back("CRLF line ends");
    if (ends.crlf > 0 && ends.lf > 0) {
        notes.push_back(fmt::format("mixed line ends: {} CRLF, {} LF", ends.crlf, ends.lf));
    }
    if (bytes.substr(0, kUtf8Mark.size()) == kUtf8Mark) notes.emplace_back("byte-order mark");
    if (!is_utf8(bytes)) notes.emplace_back("not UTF-8");
    if (!ends.final_newline) notes.emplace_back("no newline at the end");
    return fmt::format("{}", fmt::join(notes, ", "));
}

std::string counted(std::size_t n, std::string_view noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : noun == "match" ? "es" : "s");
}

}  // namespace skein::tools
