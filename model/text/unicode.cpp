#include "model/text/unicode.h"

#include <map>

#include <utf8proc.h>

namespace skein::model {

namespace {

unsigned byte_at(std::string_view bytes, std::size_t i) {
    return static_cast<unsigned char>(bytes[i]);
}

/// The White_Space property, which is what `\s` means in the published patterns.
bool is_white_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

CharClass classify(char32_t c) {
    if (c == U' ') return CharClass::blank;
    if (c == U'\n' || c == U'\r') return CharClass::newline;
    if (is_white_space(c)) return CharClass::space;
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LT:
            return CharClass::upper;
        case UTF8PROC_CATEGORY_LL:
            return CharClass::lower;
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
            return CharClass::letter;
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
            return CharClass::mark;
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO:
            return CharClass::number;
        default:
            return CharClass::other;
    }
}

}  // namespace

Utf8Lead utf8_lead(std::uint8_t byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};  // below: overlong
    if (byte == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
    if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};  // below: overlong
    if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};  // above: past U+10FFFF
    return {};
}

Utf8Step utf8_step(std::string_view bytes, std::size_t position) {
    const unsigned first = byte_at(bytes, position);
    if (first < 0x80) return {first, 1, true, false};
    const Utf8Lead lead = utf8_lead(static_cast<std::uint8_t>(first));
    if (lead.length == 0) return {};
    char32_t code_point = first & (0x7FU >> lead.length);
    for (unsigned i = 1; i < lead.length; ++i) {
        const auto seen = static_cast<std::uint8_t>(i);
        if (position + i >= bytes.size()) return {0xFFFD, seen, false, true};
        const unsigned byte = byte_at(bytes, position + i);
        const unsigned low = i == 1 ? lead.second_low : 0x80;
        const unsigned high = i == 1 ? lead.second_high : 0xBF;
        if (byte < low || byte > high) return {0xFFFD, seen, false, false};
        code_point = (code_point << 6) | (byte & 0x3F);
    }
    return {code_point, static_cast<std::uint8_t>(lead.length), true, false};
}

void append_utf8(std::string& out, char32_t code_point) {
    const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | (code_point >> 6));
        put(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        put(0xE0 | (code_point >> 12));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    } else {
        put(0xF0 | (code_point >> 18));
        put(0x80 | ((code_point >> 12) & 0x3F));
        put(0x80 | ((code_point >> 6) & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
}

CharClassTable::CharClassTable() {
    std::map<std::array<CharClass, 256>, std::uint16_t> known;
    std::array<CharClass, 256> block{};
    for (std::size_t b = 0; b < block_of_.size(); ++b) {
        for (std::size_t i = 0; i < 256; ++i) {
            block[i] = classify(static_cast<char32_t>(b * 256 + i));
        }
        const auto fresh = static_cast<std::uint16_t>(blocks_.size());
        const auto [where, inserted] = known.try_emplace(block, fresh);
        if (inserted) blocks_.push_back(block);
        block_of_[b] = where->second;
    }
}

const CharClassTable& CharClassTable::instance() {
    static const CharClassTable table;
    return table;
}

}  // namespace skein::model
