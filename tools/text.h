#pragma once
// Small text helpers for messages: bytes in, printable text out. Nothing here changes file content.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace skein::tools {

/// Whether every byte belongs to a well-formed UTF-8 sequence. Source: RFC 3629.
bool is_utf8(std::string_view bytes);

/// The longest prefix of at most `max_bytes` that ends at a character boundary.
std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes);
/// The longest suffix of at most `max_bytes` that starts at a character boundary.
std::string_view utf8_suffix(std::string_view text, std::size_t max_bytes);

/// A file name as text a model can copy: plain when printable ASCII or ordinary UTF-8, otherwise as
/// a JSON string with escapes; names that are not UTF-8 become the shell's $'...' form.
std::string shown_name(std::string_view name);

/// Without the spaces, tabs and line ends around it.
std::string_view trim(std::string_view text);

/// `text` between double quotes on one line, control characters escaped, at most `max_bytes` of it.
/// Not called `quoted`: a std::string argument would find std::quoted.
std::string quote(std::string_view text, std::size_t max_bytes = 60);

/// Levenshtein distance over bytes, or `limit + 1` as soon as it is known to be larger.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

/// The candidate nearest to `word`, or empty when none is close enough to be what was meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace skein::tools
