#include "tools/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/lines.h"
#include "tools/text.h"

namespace skein::tools {
namespace {

struct Place {
    std::size_t begin = 0, end = 0;  // bytes of the original
};

// A text with every CRLF written as LF, and the way back to the positions of the original.
struct Normalised {
    std::string text;
    std::vector<std::size_t> crlf;  // positions in `text` of the LFs that were CRLF, ascending

    explicit Normalised(std::string_view original) {
        text.reserve(original.size());
        for (std::size_t i = 0; i < original.size(); ++i) {
            if (original[i] == '\r' && i + 1 < original.size() && original[i + 1] == '\n') {
                crlf.push_back(text.size());
                continue;
            }
            text += original[i];
        }
    }
    std::size_t original(std::size_t position) const {
        const auto before = std::lower_bound(crlf.begin(), crlf.end(), position);
        return position + static_cast<std::size_t>(before - crlf.begin());
    }
};

std::string with_line_ends(std::string_view text, bool crlf) {
    const std::string plain = Normalised(text).text;
    if (!crlf) return plain;
    std::string out;
    for (const char c : plain) {
        if (c == '\n') out += '\r';
        out += c;
    }
    return out;
}

constexpr std::size_t kMaxPlacesCounted = 1000;

// Every place; overlapping ones too unless all are to be replaced: "aa" stands twice in "aaa", so
// an edit of one is ambiguous.
std::vector<Place> find_places(std::string_view content, std::string_view old_text,
                               bool replace_all) {
    const Normalised normal(content);
    const std::string wanted = Normalised(old_text).text;
    const char* const end = normal.text.data() + normal.text.size();
    std::vector<Place> all, exact;
    for (const char* from = normal.text.data(); replace_all || all.size() < kMaxPlacesCounted;) {
        // memmem is linear in the text for every pattern; std::string::find is not.
        const void* hit =
            ::memmem(from, static_cast<std::size_t>(end - from), wanted.data(), wanted.size());
        if (!hit) break;
        const char* const found = static_cast<const char*>(hit);
        const auto at = static_cast<std::size_t>(found - normal.text.data());
        const Place place{normal.original(at), normal.original(at + wanted.size())};
        all.push_back(place);
        if (content.substr(place.begin, place.end - place.begin) == old_text)
            exact.push_back(place);
        from = found + (replace_all ? wanted.size() : 1);
    }
    return exact.empty() ? all : exact;
}

std::vector<std::size_t> line_numbers(std::string_view content, const std::vector<Place>& places) {
    std::vector<std::size_t> numbers;
    std::size_t line = 1, from = 0;
    for (const Place& place : places) {
        line += line_number(content.substr(from), place.begin - from) - 1;
        from = place.begin;
        numbers.push_back(line);
    }
    return numbers;
}

// Whether lines at a place end with CRLF: the first line end in it or after it, else the last one
// of the file. Asked in ascending order of places, so that the whole file is scanned once.
class LineEndAt {
  public:
    explicit LineEndAt(std::string_view content) : content_(content), next_(content.find('\n')) {}
    bool crlf(std::size_t position) {
        while (next_ != content_.npos && next_ < position) {
            last_ = next_;
            next_ = content_.find('\n', next_ + 1);
        }
        const std::size_t newline = next_ != content_.npos ? next_ : last_;
        return newline != content_.npos && newline > 0 && content_[newline - 1] == '\r';
    }

  private:
    std::string_view content_;
    std::size_t next_, last_ = std::string_view::npos;
};

// Every run of white space as one space, none at the ends of lines: for saying "differs only in
// white space", never for editing. Curly quotes become straight ones.
std::string loosened(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view three = text.substr(i, 3);
        char c = text[i];
        if (three == "\u2018" || three == "\u2019")
            c = '\'', i += 2;
        else if (three == "\u201C" || three == "\u201D")
            c = '"', i += 2;
        else if (three == "\u202F")
            c = ' ', i += 2;
        else if (text.substr(i, 2) == "\u00A0")
            c = ' ', i += 1;
        const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (!space)
            out += c;
        else if (!out.empty() && out.back() != ' ')
            out += ' ';
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
}

constexpr std::size_t kMaxLinesCompared = 50000;
constexpr std::size_t kMaxLineBytesCompared = 300;

// Pairs of neighbouring bytes: cheap, and good enough to pick one line of a file.
std::size_t pair_at(std::string_view text, std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(text[i])) << 8 |
           static_cast<unsigned char>(text[i + 1]);
}

// The number of the line most like the text, counted from 1, or 0 when none shares half its pairs.
std::size_t nearest_line(const std::vector<std::string_view>& lines, std::string_view wanted) {
    wanted = wanted.substr(0, kMaxLineBytesCompared);
    std::vector<bool> pairs(65536, false);
    for (std::size_t i = 0; i + 1 < wanted.size(); ++i) pairs[pair_at(wanted, i)] = true;
    std::size_t best = 0;
    double best_share = 0.5;
    for (std::size_t number = 1; number <= lines.size(); ++number) {
        const std::string_view line = lines[number - 1].substr(0, kMaxLineBytesCompared);
        std::size_t shared = 0;
        for (std::size_t i = 0; i + 1 < line.size(); ++i) shared += pairs[pair_at(line, i)] ? 1 : 0;
        const double share =
            2.0 * static_cast<double>(shared) / static_cast<double>(line.size() + wanted.size());
        if (share > best_share) {
            best_share = share;
            best = number;
        }
    }
    return best;
}

bool has_line_number(std::string_view line) {
    const std::size_t digit = line.find_first_not_of(' ');
    const std::size_t end =
        digit == line.npos ? line.npos : line.find_first_not_of("0123456789", digit);
    return end != line.npos && end > digit && line[end] == '\t';
}

std::string explain_absence(std::string_view content, std::string_view old_text) {
    std::string text = "old_text is not in the file.";
    const std::vector<std::string_view> wanted = split_lines(old_text);
    const auto filled = std::find_if(wanted.begin(), wanted.end(), [](std::string_view line) {
        return line.find_first_not_of(" \t\r") != line.npos;
    });
    if (filled == wanted.end()) return text + " It holds only white space.";
    if (has_line_number(*filled)) {
        return text +
               " It starts with a line number as read_file shows it: leave the numbers and the tab "
               "out.";
    }
    if (old_text.find("\\n") != old_text.npos && wanted.size() == 1) {
        text +=
            " It holds a backslash followed by n; in JSON a line end is written as \\n, not \\\\n.";
    }
    const std::vector<std::string_view> lines = split_lines(content, kMaxLinesCompared);
    const std::string loose = loosened(*filled);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i] == *filled || lines[i].size() > 10000) continue;
        if (loosened(lines[i]) != loose) continue;
        return text + fmt::format(
                          " Line {} differs only in white space or quote style: the file has {}, "
                          "old_text has {}.",
                          i + 1, quote(lines[i], 200), quote(*filled, 200));
    }
    const std::size_t near = nearest_line(lines, *filled);
    if (near == 0) return text + " No line is like it; read the file again.";
    if (lines[near - 1].substr(0, 10000).find(*filled) != std::string_view::npos) {
        for (std::size_t i = static_cast<std::size_t>(filled - wanted.begin()), at = near - 1;
             i < wanted.size(); ++i, ++at) {
            const bool same =
                at < lines.size() &&
                (i + 1 == wanted.size() ? lines[at].substr(0, wanted[i].size()) == wanted[i]
                                        : lines[at] == wanted[i]);
            if (same || at + 1 == near) continue;
            return text +
                   fmt::format(
                       " Its line {} is where it departs: line {} of the file is {}, old_text has "
                       "{}.",
                       i + 1, at + 1, at < lines.size() ? quote(lines[at], 200) : "past the end",
                       quote(wanted[i], 200));
        }
    }
    return text + fmt::format(" The nearest line is {}: {}; old_text has {}.", near,
                              quote(lines[near - 1], 200), quote(*filled, 200));
}

std::string number_list(const std::vector<std::size_t>& numbers) {
    constexpr std::size_t kShown = 20;
    std::string text;
    for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
        text += fmt::format("{}{}", i ? ", " : "", numbers[i]);
    }
    return text + (numbers.size() > kShown ? ", ..." : "");
}

// The whole lines around [begin, end), each with a sign in front; bounded.
void append_lines(std::string& diff, char sign, std::string_view bytes, std::size_t begin,
                  std::size_t end) {
    constexpr std::size_t kMaxLines = 12, kMaxBytes = 160;
    const std::size_t first = begin == 0 ? 0 : bytes.rfind('\n', begin - 1) + 1;  // npos + 1 is 0
    const bool ends_line = end > begin && bytes[end - 1] == '\n';
    const std::size_t last =
        ends_line ? end : std::min(bytes.find('\n', end), bytes.size() - 1) + 1;
    const auto lines = split_lines(bytes.substr(first, last - first));
    for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) {
        const std::string_view shown = utf8_prefix(lines[i], kMaxBytes);
        diff += fmt::format("{}{}{}\n", sign, shown, shown.size() < lines[i].size() ? "..." : "");
    }
    if (lines.size() > kMaxLines)
        diff += fmt::format("{}... {} more lines\n", sign, lines.size() - kMaxLines);
}

}  // namespace

Replacement replace_text(std::string_view content, std::string_view old_text,
                         std::string_view new_text, bool replace_all) {
    Replacement result;
    if (content.substr(0, kUtf8Mark.size()) == kUtf8Mark) {
        // The mark stays where it is, whether or not the texts repeat it.
        if (old_text.substr(0, kUtf8Mark.size()) == kUtf8Mark)
            old_text.remove_prefix(kUtf8Mark.size());
        if (new_text.substr(0, kUtf8Mark.size()) == kUtf8Mark)
            new_text.remove_prefix(kUtf8Mark.size());
    }
    if (old_text.empty()) {
        result.problem =
            "old_text is empty. To insert, take a neighbouring line as old_text and repeat it in "
            "new_text; to write a whole file use write_file.";
        return result;
    }
    if (old_text == new_text) {
        result.problem = "old_text and new_text are the same; nothing to change.";
        return result;
    }
    const std::vector<Place> places = find_places(content, old_text, replace_all);
    result.lines = line_numbers(content, places);
    if (places.empty()) {
        result.problem = explain_absence(content, old_text);
        return result;
    }
    if (places.size() > 1 && !replace_all) {
        result.problem = fmt::format(
            "old_text is in the file {}{} times, at lines {}; add neighbouring lines until it is "
            "unique, or set "
            "replace_all.",
            places.size() == kMaxPlacesCounted ? "at least " : "", places.size(),
            number_list(result.lines));
        return result;
    }
    std::string out;
    std::size_t done = 0;
    LineEndAt line_ends(content);
    for (const Place& place : places) {
        out += content.substr(done, place.begin - done);
        const bool crlf = line_ends.crlf(place.begin);
        const bool as_given =
            !crlf && content.substr(place.begin, place.end - place.begin) == old_text;
        const std::string text = as_given ? std::string(new_text) : with_line_ends(new_text, crlf);
        const std::size_t begin = out.size();
        out += text;
        if (result.diff.empty()) {
            append_lines(result.diff, '-', content, place.begin, place.end);
            const std::size_t rest =
                std::min(content.find('\n', place.end), content.size() - 1) + 1;
            // The line goes on after the place, unless the old text ended with it.
            const std::string tail(content.substr(place.end, rest - place.end));
            const bool whole = place.end > place.begin && content[place.end - 1] == '\n';
            append_lines(result.diff, '+', out + (whole ? "" : tail), begin, begin + text.size());
        }
        done = place.end;
    }
    out += content.substr(done);
    if (out == content) {
        result.problem = "the edit changes nothing: line ends follow those of the file.";
        return result;
    }
    result.content = std::move(out);
    return result;
}

}  // namespace skein::tools
