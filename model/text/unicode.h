#pragma once
// Code points of possibly broken UTF-8, and the few character classes that pre-tokenizers ask for.
//
// The categories come from utf8proc and are kept in a two-stage table of one byte an entry.
// Source: Unicode Standard, table 3-7 (well-formed UTF-8) and "maximal subpart" in section 3.9.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::model {

/// One step of a UTF-8 reader. Requires of the reader: position < size.
struct Utf8Step {
    char32_t code_point = 0xFFFD;
    std::uint8_t length = 1;  ///< bytes; of an invalid step the maximal subpart, at least 1
    bool valid = false;
    bool truncated = false;  ///< invalid only because the bytes end here
};

/// Reads the code point, or the invalid part, that starts at `position`.
Utf8Step utf8_step(std::string_view bytes, std::size_t position);

/// What the first byte of a character promises: its bytes and the legal range of the second one;
/// length 1 for ASCII, 0 for a byte that starts nothing. Later bytes are in 80..BF.
struct Utf8Lead {
    unsigned length = 0, second_low = 0, second_high = 0;
};
Utf8Lead utf8_lead(std::uint8_t byte);

/// Appends a code point as UTF-8. Requires: a scalar value (no surrogate, at most 0x10FFFF).
void append_utf8(std::string& out, char32_t code_point);

enum class CharClass : std::uint8_t {
    upper,    ///< Lu, Lt
    lower,    ///< Ll
    letter,   ///< Lm, Lo
    mark,     ///< M
    number,   ///< N
    blank,    ///< U+0020, which some patterns attach to the next word
    newline,  ///< CR, LF
    space,    ///< every other White_Space character
    other,    ///< everything else, invalid bytes included
    end       ///< past the last byte
};

constexpr bool is_letter(CharClass c) {
    return c <= CharClass::letter;
}
constexpr bool is_space(CharClass c) {
    return c >= CharClass::blank && c <= CharClass::space;
}
/// In `[^\s\p{L}\p{N}]`.
constexpr bool is_punctuation(CharClass c) {
    return c == CharClass::other || c == CharClass::mark;
}

/// The class of every code point. Immutable; one instance a process.
class CharClassTable {
  public:
    static const CharClassTable& instance();
    CharClass of(char32_t code_point) const {
        return blocks_[block_of_[code_point >> 8]][code_point & 0xFF];
    }

  private:
    CharClassTable();
    std::array<std::uint16_t, 0x1100> block_of_{};
    std::vector<std::array<CharClass, 256>> blocks_;
};

}  // namespace skein::model
