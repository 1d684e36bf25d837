#pragma once
// Weights in the order in which the kernels read them.
//
// A matrix is cut into panels of 8 rows. A panel is a sequence of blocks of 32 columns for
// quantised types (of 1 column for float types), and inside a block the 8 rows are interleaved, so
// that one 256-bit vector holds something of each row and every output is one lane: there are no
// sums across lanes, hence no order of such sums to agree on. The last panel is filled with rows
// of zero.
//
//   float block    = value[8]                                  f32, f16 or bf16
//   int8 block     = code[16 pairs][8 rows][2 columns] scale[groups][8] minimum[8]?
//   nibble block   = word[4][8 rows][2] scale[8] minimum[8]?    16-bit words
//                    nibble n of word w, row r, parity p is column 2 * (4 * w + n) + p
//   scale, minimum = f16 as stored, or f32 where they are products of two stored numbers
//
// value = scale * (code - offset) + minimum. No information of the stored type is lost.

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/cpu/block_codes.h"
#include "model/load/tensor.h"

namespace skein::model {

inline constexpr int kPanelRows = 8;
inline constexpr int kBlockColumns = 32;

enum class PackedCodes : std::uint8_t { f32, f16, bf16, nibble, int8 };

struct PackedMatrix {
    int rows = 0;
    int columns = 0;
    PackedCodes codes = PackedCodes::f32;
    CodeLayout layout;  ///< of quantised types
    std::size_t block_bytes = 0;
    std::size_t panel_bytes = 0;
    const std::byte* data = nullptr;  ///< n_panels() * panel_bytes

    bool quantised() const { return codes == PackedCodes::nibble || codes == PackedCodes::int8; }
    int n_panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
    int padded_rows() const { return n_panels() * kPanelRows; }
    std::size_t bytes() const { return static_cast<std::size_t>(n_panels()) * panel_bytes; }
    const std::byte* panel(int index) const {
        return data + static_cast<std::size_t>(index) * panel_bytes;
    }
};

/// Where the parts of a quantised block lie.
struct BlockParts {
    std::size_t scales = 0;       ///< offset of the scales
    std::size_t minimums = 0;     ///< offset of the minimums
    std::size_t scale_bytes = 0;  ///< of one scale or minimum: 2 or 4
};
BlockParts block_parts(const PackedMatrix& matrix);

/// The shape and layout that `tensor` gets, without data.
/// Throws: Error when an extent does not fit an int or a quantised row is no multiple of 32.
PackedMatrix plan_packing(const Tensor& tensor);

/// Packs the panels [begin, end) of `tensor` to their places in `data`.
/// Threads: different panels may be packed at the same time.
void pack_panels(const Tensor& tensor, const PackedMatrix& plan, int begin, int end,
                 std::byte* data);

/// One row as floats: what the stored tensor dequantises to, bit for bit.
/// Shapes: out [columns]. Requires: 0 <= row < rows.
void unpack_row(const PackedMatrix& matrix, int row, std::span<float> out);

/// The code and the scale or minimum of one weight: the definition of the layout above.
int packed_code(const PackedMatrix& matrix, int row, int column);
float packed_scale(const PackedMatrix& matrix, int row, int column);
float packed_minimum(const PackedMatrix& matrix, int row, int column);
float packed_float(const PackedMatrix& matrix, int row, int column);

}  // namespace skein::model
