#include "model/moe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/cpu/math.h"

namespace skein::model {
namespace {

std::size_t at(int row, int stride, int column = 0) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(stride) +
           static_cast<std::size_t>(column);
}

std::vector<float> scores_of(RouterKind kind, std::span<const float> logits) {
    std::vector<float> scores(logits.begin(), logits.end());
    if (kind == RouterKind::sigmoid) {
        for (float& s : scores) s = 1.0F / (1.0F + exp_f32(-s));
        return scores;
    }
    const float largest = *std::max_element(scores.begin(), scores.end());
    float total = 0.0F;
    for (float& s : scores) total += s = exp_f32(s - largest);
    for (float& s : scores) s /= total;
    return scores;
}

void route_tokens(const MoeConfig& moe, const PackedLayer& layer, const Cpu& cpu,
                  const Activations& input, int n, MoeScratch& scratch) {
    const int stride = layer.router.padded_rows();
    const int panels = layer.router.n_panels();
    scratch.logits.resize(at(n, stride));
    scratch.experts.resize(at(n, moe.n_used));
    scratch.weights.resize(at(n, moe.n_used));
    cpu.pool.parallel_for(panels, cpu.pool.grain_for(panels, 1, 2), [&](int begin, int end) {
        cpu.kernels.matmul(layer.router, begin, end, input, n, scratch.logits.data(),
                           static_cast<std::size_t>(stride));
    });
    const auto used = static_cast<std::size_t>(moe.n_used);
    for (int t = 0; t < n; ++t)
        route(moe,
              std::span(scratch.logits)
                  .subspan(at(t, stride), static_cast<std::size_t>(moe.n_experts)),
              layer.router_bias, std::span(scratch.experts).subspan(at(t, moe.n_used), used),
              std::span(scratch.weights).subspan(at(t, moe.n_used), used));
}

/// Orders the (token, choice) pairs by expert, tokens ascending, and names the groups.
std::vector<MlpGroup> group_by_expert(const MoeConfig& moe, const PackedLayer& layer,
                                      MoeScratch& scratch) {
    std::vector<int> next(static_cast<std::size_t>(moe.n_experts) + 1);
    for (const std::int32_t e : scratch.experts) ++next[static_cast<std::size_t>(e) + 1];
    std::vector<MlpGroup> groups;
    for (std::size_t e = 0; e + 1 < next.size(); ++e) {
        if (next[e + 1] > 0) groups.push_back({&layer.experts[e], next[e], next[e + 1]});
        next[e + 1] += next[e];
    }
    scratch.row_of.resize(scratch.experts.size());
    for (std::size_t i = 0; i < scratch.experts.size(); ++i)
        scratch.row_of[i] = next[static_cast<std::size_t>(scratch.experts[i])]++;
    return groups;
}

void gather(const MoeConfig& moe, const Cpu& cpu, const Activations& input, bool codes, int n,
            MoeScratch& scratch) {
    const int columns = input.columns;
    const int blocks = columns / kBlockColumns;
    RowBuffer& rows = scratch.gathered;
    rows.reserve(n * moe.n_used, columns, codes);
    cpu.pool.parallel_for(n, cpu.pool.grain_for(n, 4), [&](int begin, int end) {
        for (int pair = begin * moe.n_used; pair < end * moe.n_used; ++pair) {
            const Activations from = rows_from(input, pair / moe.n_used);
            const int row = scratch.row_of[static_cast<std::size_t>(pair)];
            std::copy_n(from.values, columns, rows.values.data() + at(row, columns));
            if (!codes) continue;
            std::copy_n(from.codes, columns, rows.codes.data() + at(row, columns));
            std::copy_n(from.scales, blocks, rows.scales.data() + at(row, blocks));
            std::copy_n(from.sums, blocks, rows.sums.data() + at(row, blocks));
        }
    });
}

}  // namespace

void route(const MoeConfig& moe, std::span<const float> logits, std::span<const float> bias,
           std::span<std::int32_t> experts, std::span<float> weights) {
    const std::vector<float> scores = scores_of(moe.router, logits);
    std::vector<float> rank = scores;
    for (std::size_t e = 0; e < bias.size(); ++e) rank[e] += bias[e];
    std::vector<std::int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(experts.size()),
                      order.end(), [&](std::int32_t a, std::int32_t b) {
                          const float left = rank[static_cast<std::size_t>(a)];
                          const float right = rank[static_cast<std::size_t>(b)];
                          if (std::isnan(left) != std::isnan(right)) return std::isnan(right);
                          return left > right || (!(left < right) && a < b);
                      });
    float total = 0.0F;
    for (std::size_t i = 0; i < experts.size(); ++i) {
        experts[i] = order[i];
        weights[i] = scores[static_cast<std::size_t>(order[i])];
        total += weights[i];
    }
    for (float& weight : weights) {
        if (moe.renormalise) weight /= total;
        weight *= moe.scale;
    }
}

void add_experts(const ModelConfig& config, const PackedLayer& layer, const Cpu& cpu,
                 const Activations& input, int n, MoeScratch& scratch, MlpScratch& shared_scratch,
                 float* projected, float* x) {
    const MoeConfig& moe = config.moe;
    route_tokens(moe, layer, cpu, input, n, scratch);
    if (moe.shared_dim > 0) {
        const MlpGroup shared{&layer.mlp, 0, n};
        gated_mlps(config, cpu, {&shared, 1}, input, shared_scratch, projected, x);
    }
    const std::vector<MlpGroup> groups = group_by_expert(moe, layer, scratch);
    const PackedMlp& shape = layer.experts[0];
    gather(moe, cpu, input, shape.gate.quantised() || shape.up.quantised(), n, scratch);
    const int stride = shape.down.padded_rows();
    if (scratch.outputs.size() < at(n * moe.n_used, stride))
        scratch.outputs.resize(at(n * moe.n_used, stride));
    gated_mlps(config, cpu, groups, scratch.gathered.view(input.columns), scratch.mlp,
               scratch.outputs.data(), nullptr);
    cpu.pool.parallel_for(n, cpu.pool.grain_for(n, 4), [&](int begin, int end) {
        for (int pair = begin * moe.n_used; pair < end * moe.n_used; ++pair) {
            const auto i = static_cast<std::size_t>(pair);
            cpu.kernels.add_scaled(x + at(pair / moe.n_used, config.dim),
                                   scratch.outputs.data() + at(scratch.row_of[i], stride),
                                   scratch.weights[i], config.dim);
        }
    });
}

}  // namespace skein::model
