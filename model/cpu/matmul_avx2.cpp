// Projections. Every lane is one output row, so nothing is summed across lanes.
//
// One token (decode): weights are unpacked in registers while they stream by. Each call walks its
// panels from two places at once, because two streams draw more from memory than one.
// Several tokens (prefill): a slab of two panels is unpacked to 16-bit codes in the L1 cache once
// and then multiplied with many tokens, 4 at a time. All quantised types run at the same speed
// there.

#include "model/cpu/matmul_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "model/cpu/avx2_begin.h"

namespace skein::model::avx2 {
namespace {

constexpr int kSlabBlocks = 24;    // two panels of 16-bit codes: 24 KiB, leaving room in L1
constexpr int kSlabColumns = 256;  // two panels of floats: 16 KiB
constexpr int kTokenGroup = 64;    // tokens whose activations stay in L2 while panels pass

/// A quantised layout as compile-time constants.
template <PackedCodes Codes, int Group, bool Wide, bool Minimums, int Offset>
struct Format {
    static constexpr PackedCodes kCodes = Codes;
    static constexpr int kGroups = kBlockColumns / Group;
    static constexpr bool kWide = Wide;
    static constexpr bool kMinimums = Minimums;
    static constexpr int kOffset = Offset;
    static constexpr std::size_t kScaleBytes = Wide ? 4 : 2;
    static constexpr std::size_t kScales = Codes == PackedCodes::nibble ? 128 : 256;
    static constexpr std::size_t kMinimumsAt = kScales + kGroups * 8 * kScaleBytes;
    static constexpr std::size_t kBlockBytes = kMinimumsAt + (Minimums ? 8 * kScaleBytes : 0);
};

template <typename F>
__m256 load_numbers(const std::byte* at) {
    if constexpr (F::kWide) return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

/// Calls use(pair, codes) for the 16 column pairs of a block; codes: [8 rows][2 columns] of int16.
template <typename F, typename Use>
inline void for_each_pair(const std::byte* block, const Use& use) {
    if constexpr (F::kCodes == PackedCodes::int8) {
        for (int pair = 0; pair < 16; ++pair) {
            const auto* at = reinterpret_cast<const __m128i*>(block + pair * 16);
            use(pair, _mm256_cvtepi8_epi16(_mm_loadu_si128(at)));
        }
    } else {
        const __m256i low = _mm256_set1_epi16(15);
        const __m256i offset = _mm256_set1_epi16(F::kOffset);
        const auto shifted = [&](__m256i codes) {
            return F::kOffset == 0 ? codes : _mm256_sub_epi16(codes, offset);
        };
        for (int word = 0; word < 4; ++word) {
            const auto* at = reinterpret_cast<const __m256i*>(block + word * 32);
            const __m256i v = _mm256_loadu_si256(at);
            use(4 * word, shifted(_mm256_and_si256(v, low)));
            use(4 * word + 1, shifted(_mm256_and_si256(_mm256_srli_epi16(v, 4), low)));
            use(4 * word + 2, shifted(_mm256_and_si256(_mm256_srli_epi16(v, 8), low)));
            use(4 * word + 3, shifted(_mm256_srli_epi16(v, 12)));
        }
    }
}

__m256i broadcast_pair(const std::int16_t* codes) {
    std::int32_t both = 0;
    std::memcpy(&both, codes, sizeof both);
    return _mm256_set1_epi32(both);
}

/// Folds the integer sums of a block into the accumulator of 8 rows.
template <int Groups, bool Minimums>
__m256 fold(__m256 acc, const __m256i* sums, const __m256* scales, __m256 minimum, float a_scale,
            float a_sum) {
    const __m256 activation_scale = _mm256_set1_ps(a_scale);
    for (int g = 0; g < Groups; ++g)
        acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[g]),
                              _mm256_mul_ps(scales[g], activation_scale), acc);
    if constexpr (Minimums) acc = _mm256_fmadd_ps(minimum, _mm256_set1_ps(a_sum), acc);
    return acc;
}

// ---------------------------------------------------------------- one token

template <typename F, int P>
void matvec_panels(const std::byte* const (&panels)[P], const Activations& a,
                   float* const (&out)[P]) {
    __m256 acc[P];
    for (int p = 0; p < P; ++p) acc[p] = _mm256_setzero_ps();
    const std::int16_t* codes = a.codes;
    std::size_t at = 0;
    for (int b = 0; b < a.columns / kBlockColumns; ++b, codes += 32, at += F::kBlockBytes) {
        for (int p = 0; p < P; ++p) {
            const std::byte* block = panels[p] + at;
            __m256i sums[F::kGroups];
            for (auto& sum : sums) sum = _mm256_setzero_si256();
            for_each_pair<F>(block, [&](int pair, __m256i weights) {
                __m256i& sum = sums[pair * F::kGroups / 16];
                sum = _mm256_add_epi32(
                    sum, _mm256_madd_epi16(weights, broadcast_pair(codes + 2 * pair)));
            });
            __m256 scales[F::kGroups];
            for (int g = 0; g < F::kGroups; ++g)
                scales[g] = load_numbers<F>(block + F::kScales +
                                            static_cast<std::size_t>(g) * 8 * F::kScaleBytes);
            __m256 minimum = _mm256_setzero_ps();
            if constexpr (F::kMinimums) minimum = load_numbers<F>(block + F::kMinimumsAt);
            acc[p] = fold<F::kGroups, F::kMinimums>(acc[p], sums, scales, minimum, a.scales[b],
                                                    a.sums[b]);
        }
    }
    for (int p = 0; p < P; ++p) _mm256_storeu_ps(out[p], acc[p]);
}

template <typename F>
void matvec(const PackedMatrix& w, int begin, int end, const Activations& a, float* out) {
    const int half = (end - begin) / 2;
    for (int i = begin; i < begin + half; ++i) {
        const std::byte* const panels[2] = {w.panel(i), w.panel(i + half)};
        float* const outs[2] = {out + i * kPanelRows, out + (i + half) * kPanelRows};
        matvec_panels<F, 2>(panels, a, outs);
    }
    if ((end - begin) % 2 != 0) {
        const std::byte* const panels[1] = {w.panel(end - 1)};
        float* const outs[1] = {out + (end - 1) * kPanelRows};
        matvec_panels<F, 1>(panels, a, outs);
    }
}

// ---------------------------------------------------------------- several tokens

/// Unpacked blocks of P neighbouring panels.
template <typename F, int P>
struct Slab {
    alignas(32) std::int16_t codes[kSlabBlocks][16][P][16];
    alignas(32) float scales[kSlabBlocks][F::kGroups][P][8];
    alignas(32) float minimums[F::kMinimums ? kSlabBlocks : 1][P][8];
};

template <typename F, int P>
void unpack(const PackedMatrix& w, int first_panel, int first_block, int blocks, Slab<F, P>& slab) {
    for (int p = 0; p < P; ++p) {
        const std::byte* block =
            w.panel(first_panel + p) + static_cast<std::size_t>(first_block) * F::kBlockBytes;
        for (int b = 0; b < blocks; ++b, block += F::kBlockBytes) {
            for_each_pair<F>(block, [&](int pair, __m256i weights) {
                _mm256_store_si256(reinterpret_cast<__m256i*>(slab.codes[b][pair][p]), weights);
            });
            for (int g = 0; g < F::kGroups; ++g)
                _mm256_store_ps(slab.scales[b][g][p],
                                load_numbers<F>(block + F::kScales +
                                                static_cast<std::size_t>(g) * 8 * F::kScaleBytes));
            if constexpr (F::kMinimums)
                _mm256_store_ps(slab.minimums[b][p], load_numbers<F>(block + F::kMinimumsAt));
        }
    }
}

/// T tokens times P panels over the blocks of a slab; `out` carries the sums from slab to slab.
template <typename F, int P, int T>
void multiply_tile(const Slab<F, P>& slab, int first_block, int blocks, const Activations& a,
                   int token, float* out, std::size_t out_stride) {
    const std::int16_t* codes[T];
    const float* scales[T];
    const float* sums[T];
    __m256 acc[T][P];
    for (int t = 0; t < T; ++t) {
        const auto row = static_cast<std::size_t>(token + t);
        const auto columns = static_cast<std::size_t>(a.columns);
        const std::size_t block =
            row * (columns / kBlockColumns) + static_cast<std::size_t>(first_block);
        codes[t] = a.codes + row * columns + static_cast<std::size_t>(first_block) * kBlockColumns;
        scales[t] = a.scales + block;
        sums[t] = a.sums + block;
        for (int p = 0; p < P; ++p)
            acc[t][p] = first_block == 0 ? _mm256_setzero_ps()
                                         : _mm256_loadu_ps(out + row * out_stride + p * kPanelRows);
    }
    for (int b = 0; b < blocks; ++b) {
        __m256i dots[T][P][F::kGroups];
        for (int g = 0; g < F::kGroups; ++g) {
            constexpr int kPairs = 16 / F::kGroups;
            __m256i part[T][P];
            for (auto& row : part)
                for (auto& dot : row) dot = _mm256_setzero_si256();
            for (int pair = g * kPairs; pair < (g + 1) * kPairs; ++pair) {
                __m256i weights[P];
                for (int p = 0; p < P; ++p)
                    weights[p] =
                        _mm256_load_si256(reinterpret_cast<const __m256i*>(slab.codes[b][pair][p]));
                for (int t = 0; t < T; ++t) {
                    const __m256i both = broadcast_pair(codes[t] + b * kBlockColumns + 2 * pair);
                    for (int p = 0; p < P; ++p)
                        part[t][p] =
                            _mm256_add_epi32(part[t][p], _mm256_madd_epi16(weights[p], both));
                }
            }
            for (int t = 0; t < T; ++t)
                for (int p = 0; p < P; ++p) dots[t][p][g] = part[t][p];
        }
        for (int p = 0; p < P; ++p) {
            __m256 w_scales[F::kGroups];
            for (int g = 0; g < F::kGroups; ++g) w_scales[g] = _mm256_load_ps(slab.scales[b][g][p]);
            __m256 minimum = _mm256_setzero_ps();
            if constexpr (F::kMinimums) minimum = _mm256_load_ps(slab.minimums[b][p]);
            for (int t = 0; t < T; ++t)
                acc[t][p] = fold<F::kGroups, F::kMinimums>(acc[t][p], dots[t][p], w_scales, minimum,
                                                           scales[t][b], sums[t][b]);
        }
    }
    for (int t = 0; t < T; ++t)
        for (int p = 0; p < P; ++p)
            _mm256_storeu_ps(
                out + static_cast<std::size_t>(token + t) * out_stride + p * kPanelRows, acc[t][p]);
}

/// P panels times the tokens [begin, end).
template <typename F, int P>
void multiply_panels(const PackedMatrix& w, int panel, const Activations& a, int begin, int end,
                     float* out, std::size_t out_stride) {
    Slab<F, P> slab;
    const int all_blocks = a.columns / kBlockColumns;
    float* panel_out = out + static_cast<std::size_t>(panel) * kPanelRows;
    for (int first = 0; first < all_blocks; first += kSlabBlocks) {
        const int blocks = std::min(kSlabBlocks, all_blocks - first);
        unpack<F, P>(w, panel, first, blocks, slab);
        int t = begin;
        for (; t + 4 <= end; t += 4)
            multiply_tile<F, P, 4>(slab, first, blocks, a, t, panel_out, out_stride);
        for (; t < end; ++t)
            multiply_tile<F, P, 1>(slab, first, blocks, a, t, panel_out, out_stride);
    }
}

template <typename F>
void run(const PackedMatrix& w, int begin, int end, const Activations& a, int n_rows, float* out,
         std::size_t out_stride) {
    if (n_rows == 1) return matvec<F>(w, begin, end, a, out);
    for (int first = 0; first < n_rows; first += kTokenGroup) {
        const int last = std::min(n_rows, first + kTokenGroup);
        int panel = begin;
        for (; panel + 2 <= end; panel += 2)
            multiply_panels<F, 2>(w, panel, a, first, last, out, out_stride);
        if (panel < end) multiply_panels<F, 1>(w, panel, a, first, last, out, out_stride);
    }
}

// ---------------------------------------------------------------- float weights

template <PackedCodes Codes>
__m256 load_weights(const std::byte* panel, std::size_t column) {
    if constexpr (Codes == PackedCodes::f32)
        return _mm256_loadu_ps(reinterpret_cast<const float*>(panel) + column * 8);
    const auto* half = reinterpret_cast<const std::uint16_t*>(panel) + column * 8;
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(half));
    if constexpr (Codes == PackedCodes::f16) return _mm256_cvtph_ps(bits);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

template <PackedCodes Codes, int P>
void float_matvec(const PackedMatrix& w, int panel, int step, const Activations& a, float* out) {
    __m256 acc[P];
    const std::byte* panels[P];
    for (int p = 0; p < P; ++p) {
        acc[p] = _mm256_setzero_ps();
        panels[p] = w.panel(panel + p * step);
    }
    for (std::size_t k = 0; k < static_cast<std::size_t>(a.columns); ++k) {
        const __m256 value = _mm256_broadcast_ss(a.values + k);
        for (int p = 0; p < P; ++p)
            acc[p] = _mm256_fmadd_ps(load_weights<Codes>(panels[p], k), value, acc[p]);
    }
    for (int p = 0; p < P; ++p) _mm256_storeu_ps(out + (panel + p * step) * kPanelRows, acc[p]);
}

/// T tokens times P panels of unpacked floats [column][P][8]. Without the pragmas GCC 12 writes the
/// sums back to memory at every column, which takes twice the time.
template <int P, int T>
void float_tile(const float* weights, int first, int columns, const Activations& a, int token,
                float* out, std::size_t out_stride) {
    const float* values[T];
    __m256 acc[T][P];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
        const auto row = static_cast<std::size_t>(token + t);
        values[t] = a.values + row * static_cast<std::size_t>(a.columns) + first;
        for (int p = 0; p < P; ++p)
            acc[t][p] = first == 0 ? _mm256_setzero_ps()
                                   : _mm256_loadu_ps(out + row * out_stride + p * kPanelRows);
    }
    for (int k = 0; k < columns; ++k, weights += P * 8) {
        __m256 w[P];
        for (int p = 0; p < P; ++p) w[p] = _mm256_load_ps(weights + p * 8);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
            const __m256 value = _mm256_broadcast_ss(values[t] + k);
            for (int p = 0; p < P; ++p) acc[t][p] = _mm256_fmadd_ps(w[p], value, acc[t][p]);
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
        for (int p = 0; p < P; ++p)
            _mm256_storeu_ps(
                out + static_cast<std::size_t>(token + t) * out_stride + p * kPanelRows, acc[t][p]);
}

template <PackedCodes Codes, int P>
void float_panels(const PackedMatrix& w, int panel, const Activations& a, int begin, int end,
                  float* out, std::size_t out_stride) {
    alignas(32) float slab[kSlabColumns * P * 8];
    float* panel_out = out + static_cast<std::size_t>(panel) * kPanelRows;
    for (int first = 0; first < a.columns; first += kSlabColumns) {
        const int columns = std::min(kSlabColumns, a.columns - first);
        for (int k = 0; k < columns; ++k)
            for (int p = 0; p < P; ++p)
                _mm256_store_ps(
                    slab + (k * P + p) * 8,
                    load_weights<Codes>(w.panel(panel + p), static_cast<std::size_t>(first + k)));
        int t = begin;
        for (; t + 6 <= end; t += 6)  // 12 chains for two panels: all the registers hold
            float_tile<P, 6>(slab, first, columns, a, t, panel_out, out_stride);
        for (; t + 2 <= end; t += 2)
            float_tile<P, 2>(slab, first, columns, a, t, panel_out, out_stride);
        for (; t < end; ++t) float_tile<P, 1>(slab, first, columns, a, t, panel_out, out_stride);
    }
}

template <PackedCodes Codes>
void float_run(const PackedMatrix& w, int begin, int end, const Activations& a, int n_rows,
               float* out, std::size_t out_stride) {
    if (n_rows == 1) {
        // Four places at once: four chains of multiply-adds and four streams.
        const int quarter = (end - begin) / 4;
        for (int i = 0; i < quarter; ++i) float_matvec<Codes, 4>(w, begin + i, quarter, a, out);
        for (int i = begin + 4 * quarter; i < end; ++i) float_matvec<Codes, 1>(w, i, 1, a, out);
        return;
    }
    for (int first = 0; first < n_rows; first += kTokenGroup) {
        const int last = std::min(n_rows, first + kTokenGroup);
        int panel = begin;
        for (; panel + 2 <= end; panel += 2)
            float_panels<Codes, 2>(w, panel, a, first, last, out, out_stride);
        if (panel < end) float_panels<Codes, 1>(w, panel, a, first, last, out, out_stride);
    }
}

constexpr auto kNibble = PackedCodes::nibble;
constexpr auto kInt8 = PackedCodes::int8;
using Run = void (*)(const PackedMatrix&, int, int, const Activations&, int, float*, std::size_t);

/// The instance for a matrix's layout; code_layout() lists all that exist.
Run choose(const PackedMatrix& w) {
    switch (w.codes) {
        case PackedCodes::f32:
            return float_run<PackedCodes::f32>;
        case PackedCodes::f16:
            return float_run<PackedCodes::f16>;
        case PackedCodes::bf16:
            return float_run<PackedCodes::bf16>;
        case PackedCodes::nibble:
            if (w.layout.wide_scales) return run<Format<kNibble, 32, true, true, 0>>;
            if (w.layout.minimums) return run<Format<kNibble, 32, false, true, 0>>;
            return run<Format<kNibble, 32, false, false, 8>>;
        case PackedCodes::int8:
            break;
    }
    if (w.layout.group == 16) return run<Format<kInt8, 16, true, false, 0>>;
    if (w.layout.wide_scales) return run<Format<kInt8, 32, true, true, 0>>;
    if (w.layout.minimums) return run<Format<kInt8, 32, false, true, 0>>;
    return run<Format<kInt8, 32, false, false, 0>>;
}

}  // namespace

void matmul(const PackedMatrix& matrix, int panel_begin, int panel_end,
            const Activations& activations, int n_rows, float* out, std::size_t out_stride) {
    choose(matrix)(matrix, panel_begin, panel_end, activations, n_rows, out, out_stride);
}

}  // namespace skein::model::avx2

#include "model/cpu/avx2_end.h"

#endif
