// Block layouts, little-endian, fp16 scales. lo(b) = b & 15, hi(b) = b >> 4.
//   Q4_0   d qs[16]            element j = lo(qs[j]), j + 16 = hi(qs[j]);  d * (q - 8)
//   Q4_1   d m qs[16]          d * q + m
//   Q5_0   d qh[4] qs[16]      bit j of qh is bit 4 of element j;          d * (q - 16)
//   Q5_1   d m qh[4] qs[16]    d * q + m
//   Q8_0   d q[32] (int8)      d * q
//   IQ4_NL d qs[16]            d * table[q]
//   Q4_K   d dmin sc[12] qs[128]         8 sub-blocks of 32: (d * s) * q - (dmin * m)
//   Q5_K   d dmin sc[12] qh[32] qs[128]  the same with a fifth bit
//   Q6_K   ql[128] qh[64] sc[16] d       16 sub-blocks of 16: (d * s) * (q - 32)
// The order of the float operations is part of the definition: faster code must give these bits.
#include "model/load/quant.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "model/error.h"
#include "model/expect.h"

namespace skein::model {
namespace {

using Byte = std::uint8_t;

constexpr int kIq4nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};

std::uint16_t load_u16(const Byte* p) {
    return static_cast<std::uint16_t>(p[0] | (p[1] << 8));
}

std::uint32_t load_u32(const Byte* p) {
    return std::uint32_t{load_u16(p)} | (std::uint32_t{load_u16(p + 2)} << 16);
}

void store_u16(Byte* p, std::uint16_t v) {
    p[0] = static_cast<Byte>(v & 0xFF);
    p[1] = static_cast<Byte>(v >> 8);
}

float load_f16(const Byte* p) {
    return f16_to_f32(load_u16(p));
}

float load_f32(const Byte* p) {
    return std::bit_cast<float>(load_u32(p));
}

/// Nibble of element j in a 32-element block.
int nibble(const Byte* qs, int j) {
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
}

int with_fifth_bit(const Byte* qh, const Byte* qs, int j) {
    return nibble(qs, j) | static_cast<int>(((load_u32(qh) >> j) & 1U) << 4);
}

void decode_q4_0(const Byte* b, float* out) {
    const float d = load_f16(b);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(nibble(b + 2, j) - 8);
}

void decode_q4_1(const Byte* b, float* out) {
    const float d = load_f16(b);
    const float m = load_f16(b + 2);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(nibble(b + 4, j)) + m;
}

void decode_q5_0(const Byte* b, float* out) {
    const float d = load_f16(b);
    for (int j = 0; j < 32; ++j) {
        out[j] = d * static_cast<float>(with_fifth_bit(b + 2, b + 6, j) - 16);
    }
}

void decode_q5_1(const Byte* b, float* out) {
    const float d = load_f16(b);
    const float m = load_f16(b + 2);
    for (int j = 0; j < 32; ++j) {
        out[j] = d * static_cast<float>(with_fifth_bit(b + 4, b + 8, j)) + m;
    }
}

void decode_q8_0(const Byte* b, float* out) {
    const float d = load_f16(b);
    for (int j = 0; j < 32; ++j) {
        out[j] = d * static_cast<float>(static_cast<std::int8_t>(b[2 + j]));
    }
}

void decode_iq4_nl(const Byte* b, float* out) {
    const float d = load_f16(b);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(kIq4nl[nibble(b + 2, j)]);
}

struct ScaleMin {
    float scale, min;
};

/// Unpacks the 6-bit scale and minimum of sub-block i of Q4_K and Q5_K.
ScaleMin scale_min(const Byte* sc, int i, float d, float dmin) {
    int s = 0;
    int m = 0;
    if (i < 4) {
        s = sc[i] & 63;
        m = sc[i + 4] & 63;
    } else {
        s = (sc[i + 4] & 15) | ((sc[i - 4] >> 6) << 4);
        m = (sc[i + 4] >> 4) | ((sc[i] >> 6) << 4);
    }
    return {d * static_cast<float>(s), dmin * static_cast<float>(m)};
}

void decode_q4_k(const Byte* b, float* out) {
    const float d = load_f16(b);
    const float dmin = load_f16(b + 2);
    for (int i = 0; i < 8; ++i) {
        const ScaleMin sub = scale_min(b + 4, i, d, dmin);
        const Byte* qs = b + 16 + 32 * (i / 2);  // two sub-blocks share 32 bytes
        for (int l = 0; l < 32; ++l) {
            const int q = i % 2 == 0 ? qs[l] & 15 : qs[l] >> 4;
            out[32 * i + l] = sub.scale * static_cast<float>(q) - sub.min;
        }
    }
}

void decode_q5_k(const Byte* b, float* out) {
    const float d = load_f16(b);
    const float dmin = load_f16(b + 2);
    const Byte* qh = b + 16;
    for (int i = 0; i < 8; ++i) {
        const ScaleMin sub = scale_min(b + 4, i, d, dmin);
        const Byte* qs = b + 48 + 32 * (i / 2);
        for (int l = 0; l < 32; ++l) {
            const int low = i % 2 == 0 ? qs[l] & 15 : qs[l] >> 4;
            const int q = low | (((qh[l] >> i) & 1) << 4);
            out[32 * i + l] = sub.scale * static_cast<float>(q) - sub.min;
        }
    }
}

void decode_q6_k(const Byte* b, float* out) {
    const auto* sc = b + 192;
    const float d = load_f16(b + 208);
    for (int half = 0; half < 2; ++half) {
        const Byte* ql = b + 64 * half;
        const Byte* qh = b + 128 + 32 * half;
        for (int quarter = 0; quarter < 4; ++quarter) {
            for (int l = 0; l < 32; ++l) {
                const Byte packed = ql[l + 32 * (quarter % 2)];
                const int low = quarter < 2 ? packed & 15 : packed >> 4;
                const int q = low | (((qh[l] >> (2 * quarter)) & 3) << 4);
                const int s = static_cast<std::int8_t>(sc[8 * half + 2 * quarter + l / 16]);
                out[128 * half + 32 * quarter + l] =
                    (d * static_cast<float>(s)) * static_cast<float>(q - 32);
            }
        }
    }
}

void decode_f32(const Byte* b, float* out) {
    *out = load_f32(b);
}
void decode_f16(const Byte* b, float* out) {
    *out = load_f16(b);
}
void decode_bf16(const Byte* b, float* out) {
    *out = bf16_to_f32(load_u16(b));
}

/// The element of largest magnitude, the first one on ties; its sign picks the sign of the scale.
float signed_extreme(const float* x) {
    float best = x[0];
    for (int j = 1; j < 32; ++j) {
        if (std::fabs(x[j]) > std::fabs(best)) best = x[j];
    }
    return best;
}

float inverse_or_zero(float d) {
    return d == 0.0F ? 0.0F : 1.0F / d;
}

/// Truncates to an integer in [0, top]; NaN becomes 0.
int to_level(double v, int top) {
    if (!(v > 0.0)) return 0;
    return v >= top ? top : static_cast<int>(v);
}

void store_nibbles(const int* q, Byte* qs) {
    for (int j = 0; j < 16; ++j) qs[j] = static_cast<Byte>((q[j] & 15) | ((q[j + 16] & 15) << 4));
}

void store_fifth_bits(const int* q, Byte* qh) {
    for (int byte = 0; byte < 4; ++byte) {
        int bits = 0;
        for (int k = 0; k < 8; ++k) bits |= ((q[8 * byte + k] >> 4) & 1) << k;
        qh[byte] = static_cast<Byte>(bits);
    }
}

/// Q4_0 and Q5_0: symmetric, `half` = 8 or 16. The product is taken in double so that the result
/// does not depend on whether a compiler fuses the multiply and the add.
float levels_symmetric(const float* x, int half, int* q) {
    const float d = signed_extreme(x) / static_cast<float>(-half);
    const float id = inverse_or_zero(d);
    for (int j = 0; j < 32; ++j) {
        q[j] = to_level(double{x[j]} * double{id} + (half + 0.5), 2 * half - 1);
    }
    return d;
}

struct Affine {
    float d, m;
};

/// Q4_1 and Q5_1: scale and minimum, `top` = 15 or 31.
Affine levels_affine(const float* x, int top, int* q) {
    const auto [lowest, highest] = std::minmax_element(x, x + 32);
    const float d = (*highest - *lowest) / static_cast<float>(top);
    const float id = inverse_or_zero(d);
    for (int j = 0; j < 32; ++j) {
        const float scaled = (x[j] - *lowest) * id;
        q[j] = to_level(double{scaled + 0.5F}, top);
    }
    return {d, *lowest};
}

void encode_q4_0(const float* x, Byte* b) {
    int q[32];
    store_u16(b, f32_to_f16(levels_symmetric(x, 8, q)));
    store_nibbles(q, b + 2);
}

void encode_q4_1(const float* x, Byte* b) {
    int q[32];
    const Affine a = levels_affine(x, 15, q);
    store_u16(b, f32_to_f16(a.d));
    store_u16(b + 2, f32_to_f16(a.m));
    store_nibbles(q, b + 4);
}

void encode_q5_0(const float* x, Byte* b) {
    int q[32];
    store_u16(b, f32_to_f16(levels_symmetric(x, 16, q)));
    store_fifth_bits(q, b + 2);
    store_nibbles(q, b + 6);
}

void encode_q5_1(const float* x, Byte* b) {
    int q[32];
    const Affine a = levels_affine(x, 31, q);
    store_u16(b, f32_to_f16(a.d));
    store_u16(b + 2, f32_to_f16(a.m));
    store_fifth_bits(q, b + 4);
    store_nibbles(q, b + 8);
}

void encode_q8_0(const float* x, Byte* b) {
    const float d = std::fabs(signed_extreme(x)) / 127.0F;
    const float id = inverse_or_zero(d);
    store_u16(b, f32_to_f16(d));
    for (int j = 0; j < 32; ++j) {
        const float level = std::round(x[j] * id);
        const float clamped = std::isnan(level) ? 0.0F : std::clamp(level, -127.0F, 127.0F);
        b[2 + j] = static_cast<Byte>(static_cast<std::int8_t>(clamped));
    }
}

void encode_f32(const float* x, Byte* b) {
    const auto bits = std::bit_cast<std::uint32_t>(*x);
    store_u16(b, static_cast<std::uint16_t>(bits & 0xFFFF));
    store_u16(b + 2, static_cast<std::uint16_t>(bits >> 16));
}
void encode_f16(const float* x, Byte* b) {
    store_u16(b, f32_to_f16(*x));
}
void encode_bf16(const float* x, Byte* b) {
    store_u16(b, f32_to_bf16(*x));
}

using Decoder = void (*)(const Byte*, float*);
using Encoder = void (*)(const float*, Byte*);

struct Codec {
    DType type;
    Decoder decode;
    Encoder encode;  ///< nullptr: decode only
};

constexpr Codec kCodecs[] = {
    {DType::f32, decode_f32, encode_f32},    {DType::f16, decode_f16, encode_f16},
    {DType::bf16, decode_bf16, encode_bf16}, {DType::q4_0, decode_q4_0, encode_q4_0},
    {DType::q4_1, decode_q4_1, encode_q4_1}, {DType::q5_0, decode_q5_0, encode_q5_0},
    {DType::q5_1, decode_q5_1, encode_q5_1}, {DType::q8_0, decode_q8_0, encode_q8_0},
    {DType::q4_k, decode_q4_k, nullptr},     {DType::q5_k, decode_q5_k, nullptr},
    {DType::q6_k, decode_q6_k, nullptr},     {DType::iq4_nl, decode_iq4_nl, nullptr},
};

const Codec& codec(DType type) {
    for (const Codec& c : kCodecs) {
        if (c.type == type) return c;
    }
    throw Error(fmt::format("no codec for tensor type {}", static_cast<std::uint32_t>(type)));
}

}  // namespace

float f16_to_f32(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
    const std::uint32_t rest = bits & 0x7FFFU;
    if (rest >= 0x7C00) {  // infinity and NaN
        return std::bit_cast<float>(sign | 0x7F800000U | ((rest & 0x3FFU) << 13));
    }
    if (rest < 0x0400) {  // zero and subnormals: exact multiples of 2^-24
        const float magnitude = static_cast<float>(rest) * 0x1p-24F;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));
}

std::uint16_t f32_to_f16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t rest = bits & 0x7FFFFFFFU;
    if (rest > 0x7F800000U) {  // NaN stays NaN, quiet, with its upper payload
        return static_cast<std::uint16_t>(sign | 0x7E00U | ((rest >> 13) & 0x1FFU));
    }
    if (rest >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
    if (rest < 0x38800000U) {  // subnormal result: the adder rounds to nearest even at 2^-24
        const float shifted = std::bit_cast<float>(rest) + 0.5F;
        const auto level = std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U;
        return static_cast<std::uint16_t>(sign | level);
    }
    const std::uint32_t odd = (rest >> 13) & 1U;
    const std::uint32_t rounded = (rest - (112U << 23) + 0xFFFU + odd) >> 13;
    return static_cast<std::uint16_t>(sign | rounded);
}

float bf16_to_f32(std::uint16_t bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t f32_to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 64U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float e4m3_to_f32(std::uint8_t bits) {
    const int exponent = (bits >> 3) & 15;
    const int mantissa = bits & 7;
    float magnitude = NAN;
    if (exponent == 0) {
        magnitude = static_cast<float>(mantissa) * 0x1p-9F;
    } else if (exponent != 15 || mantissa != 7) {
        magnitude = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    }
    return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

void dequantize(DType type, const std::byte* blocks, std::span<float> out) {
    const DTypeInfo& info = dtype_info(type);
    expect(out.size() % info.block_elements == 0, "dequantize works on whole blocks");
    const Decoder decode = codec(type).decode;
    const auto* in = reinterpret_cast<const Byte*>(blocks);
    for (std::size_t i = 0; i < out.size(); i += info.block_elements, in += info.block_bytes) {
        decode(in, out.data() + i);
    }
}

void quantize(DType type, std::span<const float> values, std::byte* blocks) {
    const DTypeInfo& info = dtype_info(type);
    expect(values.size() % info.block_elements == 0, "quantize works on whole blocks");
    const Encoder encode = codec(type).encode;
    if (encode == nullptr) {
        throw Error(
            fmt::format("{} can be read but not written; use one of F32, F16, BF16, Q8_0, "
                        "Q4_0, Q4_1, Q5_0, Q5_1",
                        info.name));
    }
    auto* out = reinterpret_cast<Byte*>(blocks);
    for (std::size_t i = 0; i < values.size(); i += info.block_elements, out += info.block_bytes) {
        encode(values.data() + i, out);
    }
}

}  // namespace skein::model
