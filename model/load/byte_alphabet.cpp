#include "model/load/byte_alphabet.h"

#include <array>
#include <cstdint>

namespace skein::model {
namespace {

constexpr int kEnd = 0x100 + 68;

constexpr bool is_printable_byte(int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

/// code_point_of[byte].
constexpr std::array<std::uint16_t, 256> make_code_points() {
    std::array<std::uint16_t, 256> table{};
    int next = 0x100;
    for (int b = 0; b < 256; ++b) {
        table[static_cast<std::size_t>(b)] =
            static_cast<std::uint16_t>(is_printable_byte(b) ? b : next++);
    }
    return table;
}
constexpr std::array<std::uint16_t, 256> kCodePoints = make_code_points();

/// byte_of[code point], -1 outside the alphabet.
constexpr std::array<std::int16_t, kEnd> make_bytes() {
    std::array<std::int16_t, kEnd> table{};
    for (std::int16_t& b : table) b = -1;
    for (int b = 0; b < 256; ++b) {
        table[kCodePoints[static_cast<std::size_t>(b)]] = static_cast<std::int16_t>(b);
    }
    return table;
}
constexpr std::array<std::int16_t, kEnd> kBytes = make_bytes();

}  // namespace

std::optional<std::string> undo_byte_alphabet(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        // The alphabet ends at U+0143, so only one- and two-byte sequences can belong to it.
        unsigned code_point = static_cast<unsigned char>(text[i]);
        if (code_point >= 0x80) {
            if ((code_point & 0xE0U) != 0xC0U || i + 1 == text.size()) return std::nullopt;
            const unsigned next = static_cast<unsigned char>(text[++i]);
            if ((next & 0xC0U) != 0x80U) return std::nullopt;
            code_point = ((code_point & 0x1FU) << 6) | (next & 0x3FU);
            if (code_point < 0x80) return std::nullopt;  // overlong
        }
        if (code_point >= kBytes.size() || kBytes[code_point] < 0) return std::nullopt;
        bytes += static_cast<char>(kBytes[code_point]);
    }
    return bytes;
}

std::string to_byte_alphabet(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        const unsigned code_point = kCodePoints[static_cast<unsigned char>(c)];
        if (code_point < 0x80) {
            text += static_cast<char>(code_point);
        } else {
            text += static_cast<char>(0xC0U | (code_point >> 6));
            text += static_cast<char>(0x80U | (code_point & 0x3FU));
        }
    }
    return text;
}

}  // namespace skein::model
