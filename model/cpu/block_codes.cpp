#include "model/cpu/block_codes.h"

#include <cstring>

#include "model/expect.h"
#include "model/load/quant.h"

namespace skein::model {
namespace {

constexpr std::array<std::int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

int byte_at(const std::byte* p, int i) {
    return std::to_integer<int>(p[i]);
}

float half_at(const std::byte* p) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p, sizeof bits);
    return f16_to_f32(bits);
}

/// Byte j holds weight j in its low half and weight j + 16 in its high half.
void read_nibbles(const std::byte* quants, Codes32& out) {
    for (int j = 0; j < 16; ++j) {
        const int byte = byte_at(quants, j);
        out.codes[static_cast<std::size_t>(j)] = static_cast<std::int8_t>(byte & 15);
        out.codes[static_cast<std::size_t>(j + 16)] = static_cast<std::int8_t>(byte >> 4);
    }
}

/// Bit j of the 32-bit word is the fifth bit of weight j.
void add_fifth_bits(const std::byte* high, Codes32& out) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, high, sizeof bits);
    for (std::size_t j = 0; j < 32; ++j)
        out.codes[j] =
            static_cast<std::int8_t>(out.codes[j] | static_cast<int>((bits >> j & 1U) << 4U));
}

struct ScaleAndMinimum {
    int scale = 0;
    int minimum = 0;
};

/// The i-th of eight pairs of 6-bit numbers packed in 12 bytes (Q4_K and Q5_K).
ScaleAndMinimum six_bit_pair(const std::byte* packed, int i) {
    if (i < 4) return {byte_at(packed, i) & 63, byte_at(packed, i + 4) & 63};
    return {(byte_at(packed, i + 4) & 15) | (byte_at(packed, i - 4) >> 6 << 4),
            (byte_at(packed, i + 4) >> 4) | (byte_at(packed, i) >> 6 << 4)};
}

/// Sub-block i of a 256-block with 4-bit codes at `quants` and, for Q5_K, fifth bits at `high`.
Codes32 read_k_block(const std::byte* block, const std::byte* quants, const std::byte* high,
                     int i) {
    Codes32 out;
    const ScaleAndMinimum pair = six_bit_pair(block + 4, i);
    out.scale[0] = half_at(block) * static_cast<float>(pair.scale);
    out.minimum = -(half_at(block + 2) * static_cast<float>(pair.minimum));
    // 32 bytes serve two sub-blocks: the low halves the even one, the high halves the odd one.
    const std::byte* bytes = quants + 32 * (i / 2);
    const int shift = 4 * (i % 2);
    for (int j = 0; j < 32; ++j) {
        int code = byte_at(bytes, j) >> shift & 15;
        if (high != nullptr) code |= (byte_at(high, j) >> i & 1) << 4;
        out.codes[static_cast<std::size_t>(j)] = static_cast<std::int8_t>(code);
    }
    return out;
}

Codes32 read_q6_k(const std::byte* block, int i) {
    Codes32 out;
    const std::byte* low = block + 64 * (i / 4);
    const std::byte* high = block + 128 + 32 * (i / 4);
    const std::byte* scales = block + 192 + 2 * i;
    const float d = half_at(block + 208);
    const int quarter = i % 4;
    const std::byte* nibbles = low + 32 * (quarter % 2);
    for (int j = 0; j < 32; ++j) {
        const int low_bits = byte_at(nibbles, j) >> (4 * (quarter / 2)) & 15;
        const int high_bits = byte_at(high, j) >> (2 * quarter) & 3;
        out.codes[static_cast<std::size_t>(j)] =
            static_cast<std::int8_t>((low_bits | high_bits << 4) - 32);
    }
    for (int g = 0; g < 2; ++g)
        out.scale[static_cast<std::size_t>(g)] =
            d * static_cast<float>(static_cast<std::int8_t>(byte_at(scales, g)));
    return out;
}

}  // namespace

CodeLayout code_layout(DType type) {
    CodeLayout layout;
    switch (type) {
        case DType::q4_0:
            layout.nibbles = true;
            layout.offset = 8;
            break;
        case DType::q4_1:
            layout.nibbles = true;
            layout.minimums = true;
            break;
        case DType::q5_0:
            break;
        case DType::q5_1:
            layout.minimums = true;
            break;
        case DType::q8_0:
            break;
        case DType::iq4_nl:
            break;
        case DType::q4_k:
            layout = {true, 32, true, true, 0};
            break;
        case DType::q5_k:
            layout = {false, 32, true, true, 0};
            break;
        case DType::q6_k:
            layout = {false, 16, true, false, 0};
            break;
        default:
            expect(false, "only quantised types have codes");
    }
    return layout;
}

Codes32 read_codes(DType type, const std::byte* row, std::int64_t index) {
    const DTypeInfo& info = dtype_info(type);
    const auto per_block = static_cast<std::int64_t>(info.block_elements / 32);
    const std::byte* block = row + static_cast<std::size_t>(index / per_block) * info.block_bytes;
    const int part = static_cast<int>(index % per_block);
    Codes32 out;
    switch (type) {
        case DType::q4_k:
            return read_k_block(block, block + 16, nullptr, part);
        case DType::q5_k:
            return read_k_block(block, block + 48, block + 16, part);
        case DType::q6_k:
            return read_q6_k(block, part);
        case DType::q4_0:
            read_nibbles(block + 2, out);
            break;
        case DType::q4_1:
            read_nibbles(block + 4, out);
            out.minimum = half_at(block + 2);
            break;
        case DType::q5_0:
            read_nibbles(block + 6, out);
            add_fifth_bits(block + 2, out);
            for (auto& code : out.codes) code = static_cast<std::int8_t>(code - 16);
            break;
        case DType::q5_1:
            read_nibbles(block + 8, out);
            add_fifth_bits(block + 4, out);
            out.minimum = half_at(block + 2);
            break;
        case DType::q8_0:
            std::memcpy(out.codes.data(), block + 2, 32);
            break;
        case DType::iq4_nl:
            read_nibbles(block + 2, out);
            for (auto& code : out.codes) code = kIq4Values[static_cast<std::size_t>(code)];
            break;
        default:
            expect(false, "only quantised types have codes");
    }
    out.scale[0] = half_at(block);
    return out;
}

}  // namespace skein::model
