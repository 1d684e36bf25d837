#pragma once
// The operations of the forward pass on a CPU, as one table of function pointers.
//
// The scalar table (reference_ops.h) is the definition. Every other table gives the same bits: it
// may use wider registers, but each output element is computed by the same operations in the same
// order. Rounding to nearest is assumed throughout, and fused multiply-adds are explicit.

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/cpu/options.h"
#include "model/cpu/packed_matrix.h"

namespace skein::model {

/// Rows of activations, one a token, as the projections read them. Float weights read `values`.
/// Quantised weights read `codes`: each row is cut into blocks of 32, value = scale * code with
/// |code| <= 32767, so that sums of code products inside a block are exact integers.
/// Shapes: values, codes [n_rows, columns]; scales, sums [n_rows, columns / 32].
struct Activations {
    int columns = 0;
    const float* values = nullptr;
    const std::int16_t* codes = nullptr;
    const float* scales = nullptr;
    const float* sums = nullptr;  ///< scale * sum of the block's codes: multiplies the minimums
};

/// Tokens of a block of keys and values: the unit of attention, sharing and paging.
inline constexpr int kBlockTokens = 128;

/// Kernels keep one head's channels on the stack.
inline constexpr int kLargestHeadDim = 256;

/// Matrices of keys and values lie in strips of 32 columns, row after row in each, so that a kernel
/// that computes a few columns at a time reads memory in order. The last strip may be narrower.
/// Columns are the tokens of keys [head_dim, 128] and the channels of values [128, head_dim].
inline constexpr int kStripColumns = 32;
constexpr int strip_width(int columns, int column) {
    const int left = columns - column / kStripColumns * kStripColumns;
    return left < kStripColumns ? left : kStripColumns;
}
constexpr int strip_at(int rows, int columns, int row, int column) {
    const int first = column / kStripColumns * kStripColumns;
    return first * rows + row * strip_width(columns, column) + column - first;
}

/// Memory that the next call will read. A kernel may ask for it while it computes: the prefetcher
/// of a CPU does not follow from one page of the system to the next.
struct Ahead {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
};

/// One block of keys and values of one KV head, and the query rows that look at it: tokens of one
/// page from `first` on.
/// Shapes: keys [head_dim, 128], values [128, head_dim] (see strip_at) of the page; key_scales,
/// value_scales of the block's tokens, or null (all one); queries [n_rows, head_dim]
/// already multiplied by the softmax scale, visible [n_rows] in 1..128, outputs: maximum, total
/// [n_rows], weighted [n_rows, head_dim].
struct AttentionBlock {
    KvType type = KvType::f32;
    const std::byte* keys = nullptr;
    const std::byte* values = nullptr;
    const float* key_scales = nullptr;
    const float* value_scales = nullptr;
    int first = 0;     ///< a multiple of 8; of 32 when more than 16 tokens follow
    int head_dim = 0;  ///< a multiple of 8
    int n_rows = 0;    ///< at most kMostAttendRows
    const float* queries = nullptr;
    const int* visible = nullptr;  ///< how many tokens of the block each row may see
    float* maximum = nullptr;      ///< largest score
    float* total = nullptr;        ///< sum of exp(score - maximum)
    float* weighted = nullptr;     ///< sum of exp(score - maximum) * value
    Ahead ahead;                   ///< changes no result
};
inline constexpr int kMostAttendRows = 64;

/// int13 index keys are stored as two planes of bytes [dim * 128], first the high ones, then the
/// low ones (see low_bits); CpuKernels::join_codes makes codes of them. In all three, elements lie
/// in strips of 16 tokens, [128 / 16][dim / 2][16][2]: a pair of channels is one word.
inline constexpr int kStripTokens = 16;
constexpr int index_code_at(int dim, int channel, int token) {
    const int row = token / kStripTokens * (dim / 2) + channel / 2;
    return (row * kStripTokens + token % kStripTokens) * 2 + channel % 2;
}

/// Index keys of 128 tokens and the index queries that score them, see CpuKernels::score_blocks.
/// Shapes: keys [dim, 128] (see strip_at; int13: joined codes, or planes for bound_blocks),
/// key_scales [128] or null, queries [n_rows, dim] (int13: query_codes), margins [n_rows] (only of
/// bound_blocks), visible [n_rows] in 1..128, best [n_rows, 128 / block_tokens] with rows `stride`
/// apart.
struct IndexBlock {
    KvType type = KvType::f32;
    const std::byte* keys = nullptr;
    const float* key_scales = nullptr;
    int dim = 0;  ///< a multiple of 8
    int n_rows = 0;
    const float* queries = nullptr;
    const std::int16_t* query_codes = nullptr;
    const float* margins = nullptr;
    const int* visible = nullptr;  ///< how many of the tokens each row may see
    int block_tokens = 0;          ///< 8, 16, 32, 64 or 128
    float* best = nullptr;
    std::ptrdiff_t stride = 0;
    Ahead ahead;  ///< changes no result
};

struct CpuKernels {
    Isa isa;
    const char* name;

    /// out = x / sqrt(mean(x^2) + eps) * weight. Sum: 8 lanes (element i in lane i % 8), then
    /// ((0+4)+(2+6)) + ((1+5)+(3+7)). `out` may be `x`. Source: Zhang & Sennrich 2019.
    void (*rmsnorm)(const float* x, const float* weight, int n, float eps, float* out);

    /// Codes, scales and sums of one row (see Activations); blocks of which no element reaches
    /// 1e-30 become zero. Requires: n a multiple of 32.
    void (*quantize_row)(const float* x, int n, std::int16_t* codes, float* scales, float* sums);

    /// out[t, r] for the rows r of the panels [panel_begin, panel_end) and all n_rows tokens t.
    /// Quantised: acc = fma(float(block sum), w_scale * a_scale, acc), then
    /// acc = fma(w_minimum, a_sum, acc), over the blocks in order. Float: acc = fma(w, a, acc) over
    /// the columns in order. Writes the padded rows too.
    /// Shapes: out [n_rows, out_stride], out_stride >= padded_rows().
    void (*matmul)(const PackedMatrix& matrix, int panel_begin, int panel_end,
                   const Activations& activations, int n_rows, float* out, std::size_t out_stride);

    /// Turns pairs (x[2i], x[2i+1]) or (x[i], x[i + n/2]) by the angles given as cosines and sines.
    /// Shapes: x [n], cosines, sines [n / 2].
    void (*rope_interleaved)(float* x, const float* cosines, const float* sines, int n);
    void (*rope_half_split)(float* x, const float* cosines, const float* sines, int n);

    /// out = silu(gate) * up. `out` may be `gate` or `up`.
    void (*swiglu)(const float* gate, const float* up, int n, float* out);
    /// out = g * sigmoid(alpha * g) * (u + 1) with g = min(gate, limit), u = up cut to +-limit.
    /// `out` may be `gate` or `up`. Source: MiniMax-M3 and gpt-oss model code in transformers.
    void (*swigluoai)(const float* gate, const float* up, int n, float alpha, float limit,
                      float* out);
    /// x += y
    void (*add)(float* x, const float* y, int n);
    /// x = fma(factor, y, x)
    void (*add_scaled)(float* x, const float* y, float factor, int n);
    /// x *= factor
    void (*scale)(float* x, float factor, int n);

    /// Scores, exponentials and weighted values of one block for some query rows. Scores are
    /// fma chains over the head's channels in order, times the key's scale; `total` has 8 lanes
    /// (token j in lane j % 8) added as in rmsnorm; `weighted` is an fma chain over the tokens in
    /// order, of exponential times the value's scale and the value.
    void (*attend)(const AttentionBlock& block);
    /// Folds a block's result into the state of a row: the state of a softmax over more tokens.
    /// Shapes: weighted, block_weighted [head_dim].
    void (*merge)(float& maximum, float& total, float* weighted, float block_maximum,
                  float block_total, const float* block_weighted, int head_dim);
    /// out = weighted / total.
    void (*finish)(const float* weighted, float total, int head_dim, float* out);

    /// Largest score of each run of `block_tokens` tokens for each row: an fma chain over the
    /// channels in order, or for int13 the exact sum of code products; times the key's scale (that
    /// of a query is positive and would not change the order). Tokens a row may not see and NaN
    /// scores do not count; a run without any gets minus infinity. Source: block scores of MSA,
    /// arXiv 2606.13392.
    void (*score_blocks)(const IndexBlock& block);
    /// The same of int13 keys from their high bytes alone, which is half the memory: (exact sum of
    /// query codes times high bytes, times 2^low_bits, plus the row's margin in one fma), times the
    /// key's scale. Never below what score_blocks gives when the margin is score_margin's.
    void (*bound_blocks)(const IndexBlock& block);
    /// codes = high * 2^low_bits + low. Shapes: planes, codes: see index_code_at.
    void (*join_codes)(const std::byte* planes, int dim, std::int16_t* codes);

    /// One key or value in the form of a type. Codes: value = scale * code, rounding and zero as in
    /// quantize_row (int8: 127, int13: exact_dot_limit(n) in place of 32767). `scale` is only
    /// written for types that have it. Requires: n a multiple of 8. Shapes: out [n] elements of the
    /// type.
    void (*encode)(KvType type, const float* x, int n, std::byte* out, float& scale);
    /// The stored elements as floats, exactly, without scales. Requires: n a multiple of 8.
    void (*widen)(KvType type, const std::byte* elements, int n, float* out);
};

/// The most that the low bytes of any key add to the dot product with this query, and rounding.
/// Shapes: query_codes [dim].
float score_margin(const std::int16_t* query_codes, int dim);

/// The tables of this build that this CPU can run, slowest first.
std::span<const CpuKernels* const> available_kernels();
/// Throws: Error when this CPU cannot run the requested table.
const CpuKernels& select_kernels(Isa isa);

/// The tables themselves; avx2_kernels() is null on other architectures.
const CpuKernels& scalar_kernels();
const CpuKernels* avx2_kernels();

}  // namespace skein::model
