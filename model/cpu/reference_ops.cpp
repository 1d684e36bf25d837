// The definition of every operation: plain loops that read like the formulas, never optimised.
// Where a sum has a shape (8 lanes, a tree), the shape is written out, because it is part of the
// definition.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/cpu/kernels.h"
#include "model/cpu/math.h"
#include "model/load/quant.h"

namespace skein::model {
namespace {

constexpr float kLargestCode = 32767.0F;
constexpr float kSmallestAmplitude = 1e-30F;  // its inverse times kLargestCode is still finite

using Lanes = std::array<float, 8>;

float sum_of_lanes(const Lanes& l) {
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

void rmsnorm(const float* x, const float* weight, int n, float eps, float* out) {
    Lanes squares{};
    for (int i = 0; i < n; ++i) {
        float& lane = squares[static_cast<std::size_t>(i % 8)];
        lane = fma_f32(x[i], x[i], lane);
    }
    const float mean = sum_of_lanes(squares) / static_cast<float>(n);
    const float scale = 1.0F / std::sqrt(mean + eps);
    for (int i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

struct Amplitude {
    float inverse = 0;  ///< turns values into codes
    float scale = 0;    ///< turns codes into values
};

Amplitude amplitude_of(const float* x, int n, float largest_code = kLargestCode) {
    float largest = 0.0F;
    for (int i = 0; i < n; ++i) largest = max_f32(std::fabs(x[i]), largest);
    if (largest < kSmallestAmplitude) return {};
    return {largest_code / largest, largest / largest_code};
}

/// Clamped, then to the nearest integer, ties to even. NaN becomes -32768, as the vector
/// conversions make it.
std::int16_t round_to_code(float value) {
    const float clamped = max_f32(-kLargestCode, min_f32(kLargestCode, value));
    if (clamped != clamped) return -32768;
    return static_cast<std::int16_t>(std::nearbyintf(clamped));
}

void quantize_row(const float* x, int n, std::int16_t* codes, float* scales, float* sums) {
    for (int b = 0; b < n / kBlockColumns; ++b, x += kBlockColumns, codes += kBlockColumns) {
        const Amplitude range = amplitude_of(x, kBlockColumns);
        std::int32_t sum = 0;
        for (int i = 0; i < kBlockColumns; ++i) {
            codes[i] = round_to_code(x[i] * range.inverse);
            sum += codes[i];
        }
        scales[b] = range.scale;
        sums[b] = static_cast<float>(sum) * scales[b];
    }
}

float quantised_dot(const PackedMatrix& w, int row, const std::int16_t* codes, const float* scales,
                    const float* sums) {
    float acc = 0.0F;
    for (int b = 0; b < w.columns / kBlockColumns; ++b) {
        const int first = b * kBlockColumns;
        for (int begin = first; begin < first + kBlockColumns; begin += w.layout.group) {
            std::int32_t sum = 0;
            for (int k = begin; k < begin + w.layout.group; ++k)
                sum += packed_code(w, row, k) * codes[k];
            acc = fma_f32(static_cast<float>(sum), packed_scale(w, row, begin) * scales[b], acc);
        }
        if (w.layout.minimums) acc = fma_f32(packed_minimum(w, row, first), sums[b], acc);
    }
    return acc;
}

float float_dot(const PackedMatrix& w, int row, const float* values) {
    float acc = 0.0F;
    for (int k = 0; k < w.columns; ++k) acc = fma_f32(packed_float(w, row, k), values[k], acc);
    return acc;
}

void matmul(const PackedMatrix& w, int panel_begin, int panel_end, const Activations& a, int n_rows,
            float* out, std::size_t out_stride) {
    const auto columns = static_cast<std::size_t>(a.columns);
    const std::size_t blocks = columns / kBlockColumns;
    for (int r = panel_begin * kPanelRows; r < panel_end * kPanelRows; ++r) {
        for (std::size_t t = 0; t < static_cast<std::size_t>(n_rows); ++t) {
            out[t * out_stride + static_cast<std::size_t>(r)] =
                w.quantised() ? quantised_dot(w, r, a.codes + t * columns, a.scales + t * blocks,
                                              a.sums + t * blocks)
                              : float_dot(w, r, a.values + t * columns);
        }
    }
}

void rotate(float& first, float& second, float cosine, float sine) {
    const float x = first;
    const float y = second;
    first = fma_f32(x, cosine, -(y * sine));
    second = fma_f32(x, sine, y * cosine);
}

void rope_interleaved(float* x, const float* cosines, const float* sines, int n) {
    for (int i = 0; i < n / 2; ++i) rotate(x[2 * i], x[2 * i + 1], cosines[i], sines[i]);
}

void rope_half_split(float* x, const float* cosines, const float* sines, int n) {
    for (int i = 0; i < n / 2; ++i) rotate(x[i], x[i + n / 2], cosines[i], sines[i]);
}

void swiglu(const float* gate, const float* up, int n, float* out) {
    for (int i = 0; i < n; ++i) out[i] = silu_f32(gate[i]) * up[i];
}

void swigluoai(const float* gate, const float* up, int n, float alpha, float limit, float* out) {
    for (int i = 0; i < n; ++i) {
        const float g = min_f32(limit, gate[i]);
        const float u = max_f32(-limit, min_f32(limit, up[i]));
        out[i] = g / (1.0F + exp_f32(-(alpha * g))) * (u + 1.0F);
    }
}

void add(float* x, const float* y, int n) {
    for (int i = 0; i < n; ++i) x[i] += y[i];
}

void add_scaled(float* x, const float* y, float factor, int n) {
    for (int i = 0; i < n; ++i) x[i] = fma_f32(factor, y[i], x[i]);
}

void scale(float* x, float factor, int n) {
    for (int i = 0; i < n; ++i) x[i] *= factor;
}

template <typename T>
T stored(const std::byte* data, int index) {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    return value;
}

float element(KvType type, const std::byte* data, int index) {
    switch (type) {
        case KvType::f32:
            return stored<float>(data, index);
        case KvType::f16:
            return f16_to_f32(stored<std::uint16_t>(data, index));
        case KvType::bf16:
            return bf16_to_f32(stored<std::uint16_t>(data, index));
        case KvType::int16:
        case KvType::int13:
            return static_cast<float>(stored<std::int16_t>(data, index));
        case KvType::int8:
            return static_cast<float>(stored<std::int8_t>(data, index));
    }
    return 0.0F;
}

void attend_row(const AttentionBlock& block, int row) {
    const float* q = block.queries + static_cast<std::ptrdiff_t>(row) * block.head_dim;
    float* weighted = block.weighted + static_cast<std::ptrdiff_t>(row) * block.head_dim;
    const int visible = block.visible[row];
    std::array<float, kBlockTokens> p{};
    for (int j = 0; j < visible; ++j) {
        float score = 0.0F;
        for (int d = 0; d < block.head_dim; ++d)
            score = fma_f32(q[d],
                            element(block.type, block.keys,
                                    strip_at(block.head_dim, kBlockTokens, d, block.first + j)),
                            score);
        if (block.key_scales != nullptr) score *= block.key_scales[j];
        p[static_cast<std::size_t>(j)] = score;
    }
    float maximum = p[0];
    for (int j = 1; j < visible; ++j) maximum = max_f32(maximum, p[static_cast<std::size_t>(j)]);
    Lanes totals{};
    for (int j = 0; j < visible; ++j) {
        float& weight = p[static_cast<std::size_t>(j)];
        weight = exp_f32(weight - maximum);
        totals[static_cast<std::size_t>(j % 8)] += weight;
        if (block.value_scales != nullptr) weight *= block.value_scales[j];
    }
    for (int d = 0; d < block.head_dim; ++d) {
        float sum = 0.0F;
        for (int j = 0; j < visible; ++j)
            sum = fma_f32(p[static_cast<std::size_t>(j)],
                          element(block.type, block.values,
                                  strip_at(kBlockTokens, block.head_dim, block.first + j, d)),
                          sum);
        weighted[d] = sum;
    }
    block.maximum[row] = maximum;
    block.total[row] = sum_of_lanes(totals);
}

void attend(const AttentionBlock& block) {
    for (int row = 0; row < block.n_rows; ++row) attend_row(block, row);
}

void merge(float& maximum, float& total, float* weighted, float block_maximum, float block_total,
           const float* block_weighted, int head_dim) {
    const float common = max_f32(maximum, block_maximum);
    const float old_factor = exp_f32(maximum - common);
    const float new_factor = exp_f32(block_maximum - common);
    total = fma_f32(block_total, new_factor, total * old_factor);
    for (int d = 0; d < head_dim; ++d)
        weighted[d] = fma_f32(block_weighted[d], new_factor, weighted[d] * old_factor);
    maximum = common;
}

void finish(const float* weighted, float total, int head_dim, float* out) {
    for (int d = 0; d < head_dim; ++d) out[d] = weighted[d] / total;
}

float score_codes(const IndexBlock& block, int row, int token) {
    const std::int16_t* q = block.query_codes + static_cast<std::ptrdiff_t>(row) * block.dim;
    std::int32_t sum = 0;
    for (int d = 0; d < block.dim; ++d) {
        sum += q[d] * stored<std::int16_t>(block.keys, index_code_at(block.dim, d, token));
    }
    return static_cast<float>(sum) * block.key_scales[token];
}

float bound_codes(const IndexBlock& block, int row, int token) {
    const std::int16_t* q = block.query_codes + static_cast<std::ptrdiff_t>(row) * block.dim;
    std::int32_t sum = 0;
    for (int d = 0; d < block.dim; ++d)
        sum += q[d] * stored<std::int8_t>(block.keys, index_code_at(block.dim, d, token));
    const auto unit = static_cast<float>(1 << low_bits(block.dim));
    return fma_f32(static_cast<float>(sum), unit, block.margins[row]) * block.key_scales[token];
}

float score_floats(const IndexBlock& block, int row, int token) {
    const float* q = block.queries + static_cast<std::ptrdiff_t>(row) * block.dim;
    float score = 0.0F;
    for (int d = 0; d < block.dim; ++d)
        score = fma_f32(
            q[d], element(block.type, block.keys, strip_at(block.dim, kBlockTokens, d, token)),
            score);
    return block.key_scales == nullptr ? score : score * block.key_scales[token];
}

template <typename Score>
void fold_tokens(const IndexBlock& block, int row, const Score& score_of) {
    float* best = block.best + row * block.stride;
    std::fill_n(best, kBlockTokens / block.block_tokens, -std::numeric_limits<float>::infinity());
    for (int j = 0; j < block.visible[row]; ++j) {
        float& largest = best[j / block.block_tokens];
        largest = max_f32(score_of(block, row, j), largest);
    }
}

void score_blocks(const IndexBlock& block) {
    const auto score = block.type == KvType::int13 ? score_codes : score_floats;
    for (int row = 0; row < block.n_rows; ++row) fold_tokens(block, row, score);
}

void bound_blocks(const IndexBlock& block) {
    for (int row = 0; row < block.n_rows; ++row) fold_tokens(block, row, bound_codes);
}

void join_codes(const std::byte* planes, int dim, std::int16_t* codes) {
    const int n = dim * kBlockTokens;
    const int unit = 1 << low_bits(dim);
    for (int i = 0; i < n; ++i) {
        const int high = stored<std::int8_t>(planes, i);
        codes[i] = static_cast<std::int16_t>(high * unit + stored<std::uint8_t>(planes, n + i));
    }
}

template <typename T>
void store(T value, std::byte* out, int index) {
    std::memcpy(out + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

void encode(KvType type, const float* x, int n, std::byte* out, float& scale) {
    const int limit = type == KvType::int16   ? 32767
                      : type == KvType::int13 ? exact_dot_limit(n)
                                              : 127;
    Amplitude range;
    if (has_scales(type)) {
        range = amplitude_of(x, n, static_cast<float>(limit));
        scale = range.scale;
    }
    for (int i = 0; i < n; ++i) switch (type) {
            case KvType::f32:
                store(x[i], out, i);
                break;
            case KvType::f16:
                store(f32_to_f16(x[i]), out, i);
                break;
            case KvType::bf16:
                store(f32_to_bf16(x[i]), out, i);
                break;
            case KvType::int16:
                store(round_to_code(x[i] * range.inverse), out, i);
                break;
            case KvType::int8: {
                const int code = round_to_code(x[i] * range.inverse);
                store(static_cast<std::int8_t>(std::clamp(code, -limit, limit)), out, i);
                break;
            }
            case KvType::int13: {
                const int code = round_to_code(x[i] * range.inverse);
                store(static_cast<std::int16_t>(std::clamp(code, -limit, limit)), out, i);
                break;
            }
        }
}

void widen(KvType type, const std::byte* elements, int n, float* out) {
    for (int i = 0; i < n; ++i) out[i] = element(type, elements, i);
}

}  // namespace

float score_margin(const std::int16_t* query_codes, int dim) {
    // A low byte is its mean (2^bits - 1) / 2 and at most as much again, so all of them together
    // add at most mean * (sum of the codes + sqrt(dim) * norm of the query), by Cauchy-Schwarz.
    double sum = 0;
    double squares = 0;
    for (int d = 0; d < dim; ++d) {
        sum += query_codes[d];
        squares += static_cast<double>(query_codes[d]) * query_codes[d];
    }
    const double mean = ((1 << low_bits(dim)) - 1) / 2.0;
    const double reach = std::sqrt(squares * dim);
    // Three roundings to float, each of at most 2^-24 of the largest product.
    const double rounding = reach * 32768 * std::ldexp(1.0, -22);
    return static_cast<float>(mean * (sum + reach) + rounding + 1);
}

const CpuKernels& scalar_kernels() {
    static const CpuKernels table{
        Isa::scalar,      "scalar",        rmsnorm,    quantize_row, matmul,
        rope_interleaved, rope_half_split, swiglu,     swigluoai,    add,
        add_scaled,       scale,           attend,     merge,        finish,
        score_blocks,     bound_blocks,    join_codes, encode,       widen};
    return table;
}

}  // namespace skein::model
