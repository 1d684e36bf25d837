#include "agent/record.h"

#include <chrono>
#include <random>

namespace skein::agent {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::string Uid::hex() const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    text.reserve(32);
    for (const std::uint8_t byte : bytes) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

Uid Uid::make() {
    // Within one millisecond a thread's uids keep their order: the 12 bits after the version are a
    // counter (RFC 9562, 6.2, method 1), so rows sorted by uid are sorted by creation.
    thread_local std::mt19937_64 random{std::random_device{}()};
    thread_local std::uint64_t last_ms = 0;
    thread_local std::uint64_t counter = 0;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    if (ms > last_ms) {
        last_ms = ms;
        counter = 0;
    } else if (++counter > 0xFFF) {
        ++last_ms;
        counter = 0;
    }
    Uid uid;
    for (std::size_t i = 0; i < 6; ++i) {
        uid.bytes[i] = static_cast<std::uint8_t>(last_ms >> (40 - 8 * i));
    }
    uid.bytes[6] = static_cast<std::uint8_t>(0x70 | (counter >> 8));
    uid.bytes[7] = static_cast<std::uint8_t>(counter & 0xFF);
    const std::uint64_t tail = random();
    for (std::size_t i = 0; i < 8; ++i) {
        uid.bytes[8 + i] = static_cast<std::uint8_t>(tail >> (8 * i));
    }
    uid.bytes[8] = static_cast<std::uint8_t>(0x80 | (uid.bytes[8] & 0x3F));
    return uid;
}

std::optional<Uid> Uid::parse(std::string_view hex) {
    std::string digits;
    for (const char c : hex) {
        if (c != '-') digits += c;
    }
    if (digits.size() != 32) return std::nullopt;
    Uid uid;
    for (std::size_t i = 0; i < 16; ++i) {
        const int high = hex_value(digits[2 * i]);
        const int low = hex_value(digits[2 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        uid.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return uid;
}

}  // namespace skein::agent
