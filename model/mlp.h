#pragma once
// Gated MLPs over groups of rows: down(act(gate(x), up(x))). A dense MLP is one group of all rows;
// a mixture of experts is one group for each expert that some token chose.
// Source: Shazeer 2020 (GLU variants).

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/cpu/kernels.h"
#include "model/cpu/thread_pool.h"
#include "model/packed_weights.h"

namespace skein::model {

/// Rows of activations that are quantised when something reads codes; see Activations.
struct RowBuffer {
    std::vector<float> values;
    std::vector<std::int16_t> codes;
    std::vector<float> scales, sums;

    /// Makes room; contents are kept only when it was large enough.
    void reserve(int rows, int columns, bool with_codes);
    void quantize_row(const CpuKernels& kernels, int row, int columns);
    Activations view(int columns) const;
};

/// The rows of `a` from `row` on.
Activations rows_from(const Activations& a, int row);

struct MlpGroup {
    const PackedMlp* mlp = nullptr;
    int first_row = 0;
    int n_rows = 0;
};

struct MlpScratch {
    std::vector<float> gate, up;
    RowBuffer hidden;
};

/// What an evaluation on the CPU works with.
struct Cpu {
    const CpuKernels& kernels;
    ThreadPool& pool;
};

/// out[row] = down(act(gate(input[row]), up(input[row]))) for the rows of all groups.
/// When `add_to` is not null, x += out for its rows of `dim` columns.
/// Requires: all groups have equal shapes; rows of different groups do not overlap.
/// Shapes: input [rows, dim]; out [rows, padded rows of down]; add_to [rows, dim].
void gated_mlps(const ModelConfig& config, const Cpu& cpu, std::span<const MlpGroup> groups,
                const Activations& input, MlpScratch& scratch, float* out, float* add_to);

}  // namespace skein::model
