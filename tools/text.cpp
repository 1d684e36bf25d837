#include "tools/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace skein::tools {
namespace {

// Length of the well-formed sequence at the start of `s`, or 0. The ranges exclude overlong forms,
// surrogates and everything above U+10FFFF.
std::size_t sequence_length(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    std::size_t length = 0;
    unsigned char low = 0x80, high = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    }
    if (length == 0 || s.size() < length || byte(1) < low || byte(1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    return length;
}

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

char32_t code_point(std::string_view s, std::size_t length) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    if (length == 1) return byte(0);
    char32_t value = byte(0) & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) value = (value << 6) | (byte(i) & 0x3FU);
    return value;
}

// Characters that look like something else in a listing: odd spaces, joiners, direction marks and
// combining accents.
bool is_deceptive(char32_t c) {
    return c == 0xA0 || c == 0xAD || (c >= 0x300 && c <= 0x36F) || (c >= 0x2000 && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202F) || (c >= 0x205F && c <= 0x206F) || c == 0x3000 ||
           c == 0xFEFF;
}

void append_escaped(std::string& out, std::string_view s, std::size_t length) {
    const char32_t c = code_point(s, length);
    if (c == '"' || c == '\\') {
        out += '\\';
        out += static_cast<char>(c);
    } else if (c == '\n') {
        out += "\\n";
    } else if (c == '\t') {
        out += "\\t";
    } else if (c == '\r') {
        out += "\\r";
    } else if (c < 0x20 || c == 0x7F || is_deceptive(c)) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
        out += s.substr(0, length);
    }
}

std::string shell_name(std::string_view name) {
    std::string out = "$'";
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7F || c == '\'' || c == '\\') {
            out += fmt::format("\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    return out + "'";
}

}  // namespace

bool is_utf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t length = sequence_length(bytes);
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) return text;
    std::size_t end = max_bytes;
    // At most three steps: foreign encodings are cut where asked, not searched for a boundary.
    for (int i = 0; i < 3 && end > 0 && is_continuation(text[end]); ++i) --end;
    return text.substr(0, is_continuation(text[end]) ? max_bytes : end);
}

std::string_view utf8_suffix(std::string_view text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) return text;
    std::size_t begin = text.size() - max_bytes;
    for (int i = 0; i < 3 && begin < text.size() && is_continuation(text[begin]); ++i) ++begin;
    return text.substr(begin);
}

std::string shown_name(std::string_view name) {
    if (!is_utf8(name)) return shell_name(name);
    std::string escaped;
    bool plain = !name.empty() && name.front() != ' ' && name.back() != ' ' && name.front() != '"';
    for (std::string_view rest = name; !rest.empty();) {
        const std::size_t length = sequence_length(rest);
        const char32_t c = code_point(rest, length);
        plain = plain && c >= 0x20 && c != 0x7F && !is_deceptive(c);
        append_escaped(escaped, rest, length);
        rest.remove_prefix(length);
    }
    return plain ? std::string(name) : '"' + escaped + '"';
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string quote(std::string_view text, std::size_t max_bytes) {
    std::string_view rest = utf8_prefix(text, max_bytes);
    const bool cut = rest.size() < text.size();
    std::string out = "\"";
    while (!rest.empty()) {
        const std::size_t length = sequence_length(rest);
        if (length == 0) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(rest.front()));
            rest.remove_prefix(1);
        } else {
            append_escaped(out, rest, length);
            rest.remove_prefix(length);
        }
    }
    return out + (cut ? "...\"" : "\"");
}

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
    const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
    if (difference > limit) return limit + 1;
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        std::size_t best = row[0];
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
            best = std::min(best, row[j + 1]);
        }
        if (best > limit) return limit + 1;
    }
    return std::min(row[b.size()], limit + 1);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate, best_distance);
        // A word with nothing in common is no suggestion, however short it is.
        if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
            best = candidate;
            best_distance = distance;
        }
    }
    if (!best.empty()) return best;
    // "max_turns" for "turns", "file_path" for "path": one word holds the other.
    for (const std::string& candidate : candidates) {
        if (word.size() < 3 || candidate.size() < 3) continue;
        if (word.find(candidate) != word.npos || candidate.find(word) != candidate.npos) {
            if (candidate.size() > best.size()) best = candidate;
        }
    }
    return best;
}

}  // namespace skein::tools
