#include "model/cpu/packed_matrix.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "model/error.h"
#include "model/expect.h"
#include "model/load/quant.h"

namespace skein::model {
namespace {

constexpr std::size_t kRows = kPanelRows;

std::size_t float_bytes(PackedCodes codes) {
    return codes == PackedCodes::f32 ? 4 : 2;
}

PackedCodes codes_of(DType type) {
    switch (type) {
        case DType::f32:
            return PackedCodes::f32;
        case DType::f16:
            return PackedCodes::f16;
        case DType::bf16:
            return PackedCodes::bf16;
        default:
            return code_layout(type).nibbles ? PackedCodes::nibble : PackedCodes::int8;
    }
}

std::size_t code_bytes(const PackedMatrix& matrix) {
    return matrix.codes == PackedCodes::nibble ? kRows * 16 : kRows * 32;
}

void store_number(std::byte* at, bool wide, float value) {
    if (wide) {
        std::memcpy(at, &value, sizeof value);
    } else {
        const std::uint16_t half = f32_to_f16(value);  // exact: it was a stored f16
        std::memcpy(at, &half, sizeof half);
    }
}

float load_number(const std::byte* at, bool wide) {
    if (wide) {
        float value = 0;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, at, sizeof half);
    return f16_to_f32(half);
}

void pack_int8(const Codes32& from, std::size_t row, std::byte* block) {
    for (std::size_t pair = 0; pair < 16; ++pair)
        std::memcpy(block + pair * 16 + row * 2, from.codes.data() + pair * 2, 2);
}

void pack_nibbles(const Codes32& from, std::size_t row, std::byte* block) {
    for (std::size_t word = 0; word < 4; ++word) {
        for (std::size_t parity = 0; parity < 2; ++parity) {
            unsigned bits = 0;
            for (std::size_t n = 0; n < 4; ++n)
                bits |= static_cast<unsigned>(from.codes[2 * (4 * word + n) + parity]) << (4 * n);
            const auto stored = static_cast<std::uint16_t>(bits);
            std::memcpy(block + word * 32 + (row * 2 + parity) * 2, &stored, 2);
        }
    }
}

void pack_quantised_row(const Tensor& tensor, const PackedMatrix& plan, int row, std::byte* panel) {
    const BlockParts parts = block_parts(plan);
    const bool wide = plan.layout.wide_scales;
    const std::byte* source = tensor.data + static_cast<std::size_t>(row) * tensor.row_bytes();
    const auto lane = static_cast<std::size_t>(row % kPanelRows);
    for (int b = 0; b < plan.columns / kBlockColumns; ++b) {
        std::byte* block = panel + static_cast<std::size_t>(b) * plan.block_bytes;
        const Codes32 codes = read_codes(tensor.type, source, b);
        if (plan.codes == PackedCodes::nibble)
            pack_nibbles(codes, lane, block);
        else
            pack_int8(codes, lane, block);
        for (std::size_t g = 0; g < static_cast<std::size_t>(kBlockColumns / plan.layout.group);
             ++g)
            store_number(block + parts.scales + (g * kRows + lane) * parts.scale_bytes, wide,
                         codes.scale[g]);
        if (plan.layout.minimums)
            store_number(block + parts.minimums + lane * parts.scale_bytes, wide, codes.minimum);
    }
}

void pack_float_row(const Tensor& tensor, const PackedMatrix& plan, int row, std::byte* panel) {
    const std::size_t size = float_bytes(plan.codes);
    const std::byte* source = tensor.data + static_cast<std::size_t>(row) * tensor.row_bytes();
    std::byte* target = panel + static_cast<std::size_t>(row % kPanelRows) * size;
    for (int c = 0; c < plan.columns; ++c, source += size, target += kRows * size)
        std::memcpy(target, source, size);
}

const std::byte* block_of(const PackedMatrix& matrix, int row, int column) {
    const int per_block = matrix.quantised() ? kBlockColumns : 1;
    return matrix.panel(row / kPanelRows) +
           static_cast<std::size_t>(column / per_block) * matrix.block_bytes;
}

}  // namespace

BlockParts block_parts(const PackedMatrix& matrix) {
    BlockParts parts;
    const auto groups = static_cast<std::size_t>(kBlockColumns / matrix.layout.group);
    parts.scale_bytes = matrix.layout.wide_scales ? 4 : 2;
    parts.scales = code_bytes(matrix);
    parts.minimums = parts.scales + groups * kRows * parts.scale_bytes;
    return parts;
}

PackedMatrix plan_packing(const Tensor& tensor) {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max() - kPanelRows;
    if (tensor.n_rows() > kMost || tensor.row_length() > kMost)
        throw Error(fmt::format("tensor '{}': shape [{}, {}] is larger than this build can use",
                                tensor.name, tensor.n_rows(), tensor.row_length()));
    PackedMatrix plan;
    plan.rows = static_cast<int>(tensor.n_rows());
    plan.columns = static_cast<int>(tensor.row_length());
    plan.codes = codes_of(tensor.type);
    if (!plan.quantised()) {
        plan.block_bytes = kRows * float_bytes(plan.codes);
        plan.panel_bytes = static_cast<std::size_t>(plan.columns) * plan.block_bytes;
        return plan;
    }
    if (plan.columns % static_cast<int>(dtype_info(tensor.type).block_elements) != 0)
        throw Error(fmt::format("tensor '{}': rows of {} columns are no whole number of {} blocks",
                                tensor.name, plan.columns, dtype_info(tensor.type).name));
    plan.layout = code_layout(tensor.type);
    const BlockParts parts = block_parts(plan);
    plan.block_bytes = parts.minimums + (plan.layout.minimums ? kRows * parts.scale_bytes : 0);
    plan.panel_bytes = static_cast<std::size_t>(plan.columns / kBlockColumns) * plan.block_bytes;
    return plan;
}

void pack_panels(const Tensor& tensor, const PackedMatrix& plan, int begin, int end,
                 std::byte* data) {
    for (int panel = begin; panel < end; ++panel) {
        std::byte* target = data + static_cast<std::size_t>(panel) * plan.panel_bytes;
        for (int row = panel * kPanelRows; row < (panel + 1) * kPanelRows && row < plan.rows;
             ++row) {
            if (plan.quantised())
                pack_quantised_row(tensor, plan, row, target);
            else
                pack_float_row(tensor, plan, row, target);
        }
    }
}

int packed_code(const PackedMatrix& matrix, int row, int column) {
    const std::byte* block = block_of(matrix, row, column);
    const auto lane = static_cast<std::size_t>(row % kPanelRows);
    const auto pair = static_cast<std::size_t>(column % kBlockColumns / 2);
    const auto parity = static_cast<std::size_t>(column % 2);
    if (matrix.codes == PackedCodes::int8)
        return static_cast<std::int8_t>(std::to_integer<int>(block[pair * 16 + lane * 2 + parity]));
    std::uint16_t word = 0;
    std::memcpy(&word, block + pair / 4 * 32 + (lane * 2 + parity) * 2, sizeof word);
    return (word >> (4 * (pair % 4)) & 15) - matrix.layout.offset;
}

float packed_scale(const PackedMatrix& matrix, int row, int column) {
    const BlockParts parts = block_parts(matrix);
    const auto group = static_cast<std::size_t>(column % kBlockColumns / matrix.layout.group);
    const auto lane = static_cast<std::size_t>(row % kPanelRows);
    return load_number(
        block_of(matrix, row, column) + parts.scales + (group * kRows + lane) * parts.scale_bytes,
        matrix.layout.wide_scales);
}

float packed_minimum(const PackedMatrix& matrix, int row, int column) {
    if (!matrix.layout.minimums) return 0.0F;
    const BlockParts parts = block_parts(matrix);
    const auto lane = static_cast<std::size_t>(row % kPanelRows);
    return load_number(block_of(matrix, row, column) + parts.minimums + lane * parts.scale_bytes,
                       matrix.layout.wide_scales);
}

float packed_float(const PackedMatrix& matrix, int row, int column) {
    const std::byte* at = block_of(matrix, row, column) +
                          static_cast<std::size_t>(row % kPanelRows) * float_bytes(matrix.codes);
    if (matrix.codes == PackedCodes::f32) return load_number(at, true);
    if (matrix.codes == PackedCodes::f16) return load_number(at, false);
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return bf16_to_f32(bits);
}

void unpack_row(const PackedMatrix& matrix, int row, std::span<float> out) {
    expect(row >= 0 && row < matrix.rows && out.size() == static_cast<std::size_t>(matrix.columns),
           "a row inside the matrix and room for all of it");
    for (int c = 0; c < matrix.columns; ++c) {
        float& value = out[static_cast<std::size_t>(c)];
        if (!matrix.quantised()) {
            value = packed_float(matrix, row, c);
            continue;
        }
        value = packed_scale(matrix, row, c) * static_cast<float>(packed_code(matrix, row, c));
        if (matrix.layout.minimums) value += packed_minimum(matrix, row, c);
    }
}

}  // namespace skein::model
