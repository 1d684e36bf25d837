// The elements with an alphabet of their own, JSON strings, raw text and JSON numbers, as small
// state machines over one frame. Source: RFC 8259, sections 6 and 7.

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/sampling/grammar_machine.h"
#include "model/text/unicode.h"

namespace skein::model {

namespace {

// ---- Strings. memo: characters so far. at: see each phase.

namespace string_phase {
constexpr std::uint32_t begin = 0, plain = 1, escape = 2;
constexpr std::uint32_t inside = 3;  // at: bytes left | lowest next << 8 | highest next << 16
constexpr std::uint32_t hex = 4;     // at: digits seen | kSurrogateHalf after a first D
constexpr std::uint32_t ended = 5;
constexpr std::uint32_t kSurrogateHalf = 8;
}  // namespace string_phase

bool is_hex(std::uint8_t byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
           (byte >= 'A' && byte <= 'F');
}

bool finish_character(Frame& frame) {
    ++frame.memo;
    frame.phase = string_phase::plain;
    return true;
}

bool first_of_character(Frame& frame, std::uint8_t byte) {
    const Utf8Lead lead = utf8_lead(byte);
    if (lead.length == 1) return finish_character(frame);
    if (lead.length == 0) return false;
    frame.phase = string_phase::inside;
    frame.at = (lead.length - 1) | (lead.second_low << 8) | (lead.second_high << 16);
    return true;
}

bool plain_step(const JsonStringLimits& limits, Frame& frame, std::uint8_t byte) {
    if (byte == '"') {
        frame.phase = string_phase::ended;
        return frame.memo >= static_cast<std::uint64_t>(limits.min_chars);
    }
    if (byte < 0x20 || frame.memo >= static_cast<std::uint64_t>(limits.max_chars)) return false;
    if (byte == '\\') {
        frame.phase = string_phase::escape;
        return true;
    }
    return first_of_character(frame, byte);
}

bool inside_step(Frame& frame, std::uint8_t byte) {
    if (byte < ((frame.at >> 8) & 0xFF) || byte > (frame.at >> 16)) return false;
    const std::uint32_t left = (frame.at & 0xFF) - 1;
    if (left == 0) return finish_character(frame);
    frame.at = left | (0x80U << 8) | (0xBFU << 16);
    return true;
}

bool escape_step(Frame& frame, std::uint8_t byte) {
    if (byte == 'u') {
        frame.phase = string_phase::hex;
        frame.at = 0;
        return true;
    }
    return std::string_view("\"\\/bfnrt").find(static_cast<char>(byte)) != std::string_view::npos &&
           finish_character(frame);
}

/// Escapes of surrogates are left out: characters above U+FFFF can be written as they are.
bool hex_step(Frame& frame, std::uint8_t byte) {
    const bool surrogate_half = (frame.at & string_phase::kSurrogateHalf) != 0;
    if (!is_hex(byte) || (surrogate_half && byte > '7')) return false;
    const std::uint32_t seen = (frame.at & ~string_phase::kSurrogateHalf) + 1;
    if (seen == 4) return finish_character(frame);
    const bool first_is_d = seen == 1 && (byte == 'd' || byte == 'D');
    frame.at = seen | (first_is_d ? string_phase::kSurrogateHalf : 0);
    return true;
}

// ---- Numbers with bounds: the text without sign and point is an integer, counted in units of the
// last allowed fraction digit. memo: that integer so far. at: fraction digits so far | kNegative.

namespace number_phase {
constexpr std::uint32_t begin = 0, minus = 1, zero = 2, digits = 3, point = 4, fraction = 5;
constexpr std::uint32_t exponent = 6, exponent_sign = 7, exponent_digits = 8;
}  // namespace number_phase

constexpr std::uint32_t kNegative = 0x100;
constexpr int kFractionDigits = 6;
constexpr std::uint64_t kUnit = 1'000'000;
constexpr double kRealLimit = 9e12;

/// The magnitudes allowed after a sign, in units; empty when low > high.
struct Magnitudes {
    std::uint64_t low = 1, high = 0;
};

/// Two's complement negation without overflow.
std::uint64_t magnitude(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    return value < 0 ? ~bits + 1 : bits;
}

Magnitudes magnitudes(std::int64_t low, std::int64_t high, bool negative) {
    if (negative) {
        if (low >= 0) return {};
        return {high < 0 ? magnitude(high) : 1, magnitude(low)};  // no -0
    }
    if (high < 0) return {};
    return {low > 0 ? magnitude(low) : 0, magnitude(high)};
}

/// A real bound in units, rounded towards the inside.
std::int64_t real_bound(double bound, bool is_minimum) {
    const double clamped = std::clamp(bound, -kRealLimit, kRealLimit);
    const double units = clamped * static_cast<double>(kUnit);
    double rounded = is_minimum ? std::ceil(units) : std::floor(units);
    // The product was rounded; what counts is the value that a reader of the text gets. Past 2^53
    // the next integer is not the next double.
    const double back = rounded / static_cast<double>(kUnit);
    if (is_minimum && back < clamped)
        rounded = std::max(rounded + 1, std::nextafter(rounded, 1e19));
    if (!is_minimum && back > clamped) {
        rounded = std::min(rounded - 1, std::nextafter(rounded, -1e19));
    }
    return static_cast<std::int64_t>(rounded);
}

struct Bounds {
    std::int64_t low = 0, high = 0;
};

Bounds bounds_of(const JsonNumberLimits& limits) {
    if (limits.integer) {
        return {limits.minimum.value_or(std::numeric_limits<std::int64_t>::min()),
                limits.maximum.value_or(std::numeric_limits<std::int64_t>::max())};
    }
    const double low = limits.real_minimum.value_or(-kRealLimit);
    const double high = limits.real_maximum.value_or(kRealLimit);
    if (!(low <= kRealLimit && high >= -kRealLimit)) return {1, 0};  // NaN too
    return {real_bound(low, true), real_bound(high, false)};
}

bool is_bounded(const JsonNumberLimits& limits) {
    return limits.integer || limits.real_minimum || limits.real_maximum;
}

Magnitudes allowed(const JsonNumberLimits& limits, bool negative) {
    const Bounds bounds = bounds_of(limits);
    return bounds.low > bounds.high ? Magnitudes{} : magnitudes(bounds.low, bounds.high, negative);
}

std::uint64_t power_of_ten(std::uint32_t n) {
    std::uint64_t power = 1;
    while (n-- > 0) power *= 10;
    return power;
}

/// Whether some text that starts with whole part `whole` lies in the (non-empty) range.
bool whole_leads_into(std::uint64_t whole, std::uint64_t unit, const Magnitudes& range) {
    // With n more digits the whole part is in first .. first + width - 1, then any fraction.
    std::uint64_t first = whole;
    std::uint64_t width = 1;
    while (first <= range.high / unit) {
        if (first + (width - 1) >= range.low / unit) return true;
        if (whole == 0 || first > std::numeric_limits<std::uint64_t>::max() / 10) return false;
        first *= 10;
        width *= 10;
    }
    return false;
}

bool fraction_may_end(const Frame& frame) {
    return frame.memo % 10 != 0;
}

/// The value when the text ends here, in units.
std::uint64_t value_here(const Frame& frame, std::uint64_t unit) {
    if (frame.phase != number_phase::fraction) return frame.memo * unit;
    return frame.memo * power_of_ten(kFractionDigits - (frame.at & 0xFF));
}

bool in(const Magnitudes& range, std::uint64_t value) {
    return value >= range.low && value <= range.high;
}

bool fraction_leads_into(const Frame& frame, const Magnitudes& range) {
    const std::uint64_t width = power_of_ten(kFractionDigits - (frame.at & 0xFF));
    const std::uint64_t first = frame.memo * width;
    if (in(range, first) && (frame.at & 0xFF) > 0 && fraction_may_end(frame)) return true;
    return width > 1 && first + 1 <= range.high && first + (width - 1) >= range.low;
}

bool bounded_step(const JsonNumberLimits& limits, Frame& frame, std::uint8_t byte) {
    const std::uint64_t unit = limits.integer ? 1 : kUnit;
    if (frame.phase == number_phase::begin && byte == '-') {
        frame.phase = number_phase::minus;
        frame.at = kNegative;
        const Magnitudes range = allowed(limits, true);
        return range.low <= range.high;
    }
    const Magnitudes range = allowed(limits, (frame.at & kNegative) != 0);
    if (range.low > range.high) return false;
    const bool digit = byte >= '0' && byte <= '9';
    const std::uint64_t value = digit ? byte - std::uint64_t{'0'} : 0;
    switch (frame.phase) {
        case number_phase::begin:
        case number_phase::minus:
            // An integer is never -0; a fraction may be -0.5.
            if (!digit || (value == 0 && limits.integer && frame.phase == number_phase::minus)) {
                return false;
            }
            frame.phase = value == 0 ? number_phase::zero : number_phase::digits;
            frame.memo = value;
            return whole_leads_into(value, unit, range);
        case number_phase::digits:
            if (digit) {
                if (frame.memo > (range.high / unit) / 10) return false;
                frame.memo = frame.memo * 10 + value;
                return whole_leads_into(frame.memo, unit, range);
            }
            [[fallthrough]];
        case number_phase::zero:
            if (byte != '.' || limits.integer || frame.memo > range.high / unit) return false;
            frame.phase = number_phase::point;
            return fraction_leads_into(frame, range);
        default:
            if (!digit || (frame.at & 0xFF) == kFractionDigits) return false;
            frame.phase = number_phase::fraction;
            frame.memo = frame.memo * 10 + value;
            ++frame.at;
            return fraction_leads_into(frame, range);
    }
}

bool bounded_may_end(const JsonNumberLimits& limits, const Frame& frame) {
    if (frame.phase != number_phase::zero && frame.phase != number_phase::digits &&
        !(frame.phase == number_phase::fraction && fraction_may_end(frame))) {
        return false;
    }
    const std::uint64_t unit = limits.integer ? 1 : kUnit;
    const Magnitudes range = allowed(limits, (frame.at & kNegative) != 0);
    if (frame.phase != number_phase::fraction && frame.memo > range.high / unit) return false;
    return in(range, value_here(frame, unit));
}

// ---- Numbers without bounds: 15 whole digits, 15 of fraction, 2 of exponent, so that every reader
// gets a finite double. at: digits of the current part.

bool free_step(Frame& frame, std::uint8_t byte) {
    const bool digit = byte >= '0' && byte <= '9';
    const auto take = [&frame](std::uint32_t phase, std::uint32_t most) {
        frame.at = frame.phase == phase ? frame.at + 1 : 1;
        frame.phase = phase;
        return frame.at <= most;
    };
    const bool whole_ended =
        frame.phase == number_phase::zero || frame.phase == number_phase::digits;
    if (byte == '-' && frame.phase == number_phase::begin) return take(number_phase::minus, 1);
    if (byte == '.') return whole_ended && take(number_phase::point, 1);
    if (byte == 'e' || byte == 'E') {
        return (whole_ended || frame.phase == number_phase::fraction) &&
               take(number_phase::exponent, 1);
    }
    if (byte == '+' || byte == '-') {
        return frame.phase == number_phase::exponent && take(number_phase::exponent_sign, 1);
    }
    if (!digit) return false;
    switch (frame.phase) {
        case number_phase::begin:
        case number_phase::minus:
            return take(byte == '0' ? number_phase::zero : number_phase::digits, 1);
        case number_phase::zero:
            return false;
        case number_phase::digits:
            return take(number_phase::digits, 15);
        case number_phase::point:
        case number_phase::fraction:
            return take(number_phase::fraction, 15);
        default:
            return take(number_phase::exponent_digits, 2);
    }
}

bool free_may_end(const Frame& frame) {
    return frame.phase == number_phase::zero || frame.phase == number_phase::digits ||
           frame.phase == number_phase::fraction || frame.phase == number_phase::exponent_digits;
}

}  // namespace

bool string_step(const JsonStringLimits& limits, Frame& frame, std::uint8_t byte) {
    switch (frame.phase) {
        case string_phase::begin:
            frame.phase = string_phase::plain;
            return byte == '"';
        case string_phase::plain:
            return plain_step(limits, frame, byte);
        case string_phase::inside:
            return inside_step(frame, byte);
        case string_phase::escape:
            return escape_step(frame, byte);
        case string_phase::hex:
            return hex_step(frame, byte);
        default:
            return false;
    }
}

bool string_ended(const Frame& frame) {
    return frame.phase == string_phase::ended;
}

int string_free_characters(const JsonStringLimits& limits, const Frame& frame) {
    if (frame.phase != string_phase::plain) return 0;
    return limits.max_chars - static_cast<int>(frame.memo);
}

bool raw_step(const RawTextLimits& limits, Frame& frame, std::uint8_t byte) {
    if (frame.phase == string_phase::inside) return inside_step(frame, byte);
    if (frame.memo >= static_cast<std::uint64_t>(limits.max_chars)) return false;
    return first_of_character(frame, byte);
}

bool raw_may_end(const RawTextLimits& limits, const Frame& frame) {
    return frame.phase != string_phase::inside &&
           frame.memo >= static_cast<std::uint64_t>(limits.min_chars);
}

int raw_free_characters(const RawTextLimits& limits, const Frame& frame) {
    if (frame.phase == string_phase::inside) return 0;
    return limits.max_chars - static_cast<int>(frame.memo);
}

bool number_step(const JsonNumberLimits& limits, Frame& frame, std::uint8_t byte) {
    return is_bounded(limits) ? bounded_step(limits, frame, byte) : free_step(frame, byte);
}

bool number_may_end(const JsonNumberLimits& limits, const Frame& frame) {
    return is_bounded(limits) ? bounded_may_end(limits, frame) : free_may_end(frame);
}

bool number_possible(const JsonNumberLimits& limits) {
    const Bounds bounds = bounds_of(limits);
    return bounds.low <= bounds.high;
}

}  // namespace skein::model
