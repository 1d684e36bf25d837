#include "model/mlp.h"

#include <algorithm>

namespace skein::model {
namespace {

std::size_t index(int row, int stride) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(stride);
}

/// Some panels of one group: the unit that a thread takes.
struct Item {
    const MlpGroup* group;
    int begin, end;
};

std::vector<Item> share_out(std::span<const MlpGroup> groups, int panels, int n_rows,
                            const ThreadPool& pool) {
    const int total = panels * static_cast<int>(groups.size());
    const int grain = pool.grain_for(total, n_rows == 1 ? 1 : 4, 2);
    std::vector<Item> items;
    for (const MlpGroup& group : groups)
        for (int begin = 0; begin < panels; begin += grain)
            items.push_back({&group, begin, std::min(begin + grain, panels)});
    return items;
}

void activate(const ModelConfig& config, const CpuKernels& kernels, const float* gate,
              const float* up, int n, float* out) {
    if (config.activation == ActivationKind::silu)
        kernels.swiglu(gate, up, n, out);
    else
        kernels.swigluoai(gate, up, n, config.activation_alpha, config.activation_limit, out);
}

template <typename Body>
void for_items(ThreadPool& pool, const std::vector<Item>& items, const Body& body) {
    pool.parallel_for(static_cast<int>(items.size()), 1, [&](int begin, int end) {
        for (int i = begin; i < end; ++i) body(items[static_cast<std::size_t>(i)]);
    });
}

}  // namespace

void RowBuffer::reserve(int rows, int columns, bool with_codes) {
    const std::size_t elements = index(rows, columns);
    if (values.size() < elements) values.resize(elements);
    if (!with_codes) return;
    if (codes.size() < elements) codes.resize(elements);
    const std::size_t blocks = index(rows, columns / kBlockColumns);
    if (scales.size() < blocks) {
        scales.resize(blocks);
        sums.resize(blocks);
    }
}

void RowBuffer::quantize_row(const CpuKernels& kernels, int row, int columns) {
    const std::size_t block = index(row, columns / kBlockColumns);
    kernels.quantize_row(values.data() + index(row, columns), columns,
                         codes.data() + index(row, columns), scales.data() + block,
                         sums.data() + block);
}

Activations RowBuffer::view(int columns) const {
    if (codes.empty()) return {columns, values.data(), nullptr, nullptr, nullptr};
    return {columns, values.data(), codes.data(), scales.data(), sums.data()};
}

Activations rows_from(const Activations& a, int row) {
    const std::size_t element = index(row, a.columns);
    const std::size_t block = index(row, a.columns / kBlockColumns);
    if (a.codes == nullptr) return {a.columns, a.values + element, nullptr, nullptr, nullptr};
    return {a.columns, a.values + element, a.codes + element, a.scales + block, a.sums + block};
}

void gated_mlps(const ModelConfig& config, const Cpu& cpu, std::span<const MlpGroup> groups,
                const Activations& input, MlpScratch& scratch, float* out, float* add_to) {
    if (groups.empty()) return;
    const PackedMlp& shape = *groups[0].mlp;
    const int width = shape.down.columns;
    const int stride = shape.gate.padded_rows();
    const int down_stride = shape.down.padded_rows();
    int rows = 0;
    for (const MlpGroup& group : groups) rows = std::max(rows, group.first_row + group.n_rows);
    if (scratch.gate.size() < index(rows, stride)) {
        scratch.gate.resize(index(rows, stride));
        scratch.up.resize(index(rows, stride));
    }
    const bool quantised = std::any_of(groups.begin(), groups.end(), [](const MlpGroup& group) {
        return group.mlp->down.quantised();
    });
    scratch.hidden.reserve(rows, width, quantised);

    for_items(
        cpu.pool, share_out(groups, shape.gate.n_panels(), rows, cpu.pool), [&](const Item& item) {
            const MlpGroup& group = *item.group;
            const Activations a = rows_from(input, group.first_row);
            float* gate = scratch.gate.data() + index(group.first_row, stride);
            float* up = scratch.up.data() + index(group.first_row, stride);
            const auto row_stride = static_cast<std::size_t>(stride);
            cpu.kernels.matmul(group.mlp->gate, item.begin, item.end, a, group.n_rows, gate,
                               row_stride);
            cpu.kernels.matmul(group.mlp->up, item.begin, item.end, a, group.n_rows, up,
                               row_stride);
            const int first = item.begin * kPanelRows;
            const int count = std::min(item.end * kPanelRows, width) - first;
            for (int t = 0; t < group.n_rows; ++t) {
                const std::size_t at = index(t, stride) + static_cast<std::size_t>(first);
                activate(config, cpu.kernels, gate + at, up + at, count,
                         scratch.hidden.values.data() + index(group.first_row + t, width) + first);
            }
        });
    if (quantised)
        cpu.pool.parallel_for(rows, cpu.pool.grain_for(rows, 4), [&](int begin, int end) {
            for (int row = begin; row < end; ++row)
                scratch.hidden.quantize_row(cpu.kernels, row, width);
        });
    const Activations hidden = scratch.hidden.view(width);
    const int dim = shape.down.rows;
    for_items(cpu.pool, share_out(groups, shape.down.n_panels(), rows, cpu.pool),
              [&](const Item& item) {
                  const MlpGroup& group = *item.group;
                  float* result = out + index(group.first_row, down_stride);
                  cpu.kernels.matmul(group.mlp->down, item.begin, item.end,
                                     rows_from(hidden, group.first_row), group.n_rows, result,
                                     static_cast<std::size_t>(down_stride));
                  if (add_to == nullptr) return;
                  const int first = item.begin * kPanelRows;
                  const int count = std::min(item.end * kPanelRows, dim) - first;
                  for (int t = 0; t < group.n_rows; ++t)
                      cpu.kernels.add(add_to + index(group.first_row + t, dim) + first,
                                      result + index(t, down_stride) + first, count);
              });
}

}  // namespace skein::model
