#include "model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/attention/dense.h"
#include "model/attention/msa.h"
#include "model/attention/retrofit.h"
#include "model/attention/select.h"
#include "model/cpu/math.h"
#include "model/error.h"
#include "model/expect.h"

namespace skein::model {
namespace {

std::ptrdiff_t offset(int row, int stride) {
    return static_cast<std::ptrdiff_t>(row) * stride;
}

/// Cosines and sines of one position.
void angles_of(int position, std::span<const double> frequencies, float* cosines, float* sines) {
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const SinCos angle = sincos_f64(position * frequencies[i]);
        cosines[i] = static_cast<float>(angle.cos);
        sines[i] = static_cast<float>(angle.sin);
    }
}

bool is_retrofitted(const ModelConfig& config) {
    return !config.layers.empty() && config.layers[0].attention == AttentionKind::retrofit;
}

/// The full blocks of one layer that end in (first, last] and are not stored yet.
void seal_blocks(const ModelConfig& config, const Cpu& cpu, BlockTable& table, int first, int last,
                 int layer, std::span<const double> frequencies) {
    const int begin = std::max(first, table.size()) / kBlockTokens;
    const int end = last / kBlockTokens;
    if (begin >= end) return;
    cpu.pool.parallel_for(end - begin, 1, [&](int from, int to) {
        std::vector<float> cosines(frequencies.size());
        std::vector<float> sines(frequencies.size());
        for (int block = begin + from; block < begin + to; ++block) {
            angles_of(block * kBlockTokens, frequencies, cosines.data(), sines.data());
            seal_block(table.layout(), cpu.kernels,
                       table.writable_block((block + 1) * kBlockTokens - 1), layer, config.rope,
                       config.rope_dim, cosines.data(), sines.data());
        }
    });
}

/// The state of one call, so that the steps below read as formulas.
class Pass {
  public:
    Pass(const ModelConfig& config, const CpuKernels& kernels, ThreadPool& pool,
         Workspace& workspace, std::span<const Sequence> sequences);

    void embed(const PackedMatrix& embedding);
    void compute_angles(std::span<const double> frequencies);
    void layer(const PackedLayer& layer, int index, std::span<const double> frequencies);
    void head(const PackedWeights& weights);

  private:
    /// Rows of one sequence that are still being evaluated.
    struct Segment {
        int first_row, n_rows, start;
    };

    template <typename Body>
    void for_each_row(const Body& body) {
        cpu_.pool.parallel_for(n_, cpu_.pool.grain_for(n_, 4), [&](int begin, int end) {
            for (int t = begin; t < end; ++t) body(t);
        });
    }
    const Sequence& sequence_of(int row) const {
        return sequences_[static_cast<std::size_t>(
            w_.rows[static_cast<std::size_t>(row)].sequence)];
    }
    void extend_far_angles(std::span<const double> frequencies);
    void normalize(const std::vector<float>& weight, bool quantised);
    void project_inputs(const PackedLayer& layer);
    void rotate(float* head, int row) const;
    void norm_heads(float* heads, int n_heads, int head_dim, const std::vector<float>& norm) const;
    void norm_and_rotate(float* heads, int n_heads, int row, int head_dim,
                         const std::vector<float>& norm) const;
    void rotate_and_store(const PackedLayer& layer, int index);
    void attend_far(const AttentionCall& call, const Segment& segment);
    void keep_last_rows(const PackedLayer& layer);
    void attend(int index, const LayerConfig& layer, const PackedLayer& weights);
    void project_attended(const PackedMatrix& wo);
    void feed_forward(const PackedLayer& layer, int index);
    bool is_reported(int row) const;
    void report_blocks(int index, int row) const;
    void report_experts(int index) const;

    const ModelConfig& config_;
    Cpu cpu_;
    Workspace& w_;
    std::span<const Sequence> sequences_;
    std::vector<Segment> segments_;
    int n_ = 0;
};

Pass::Pass(const ModelConfig& config, const CpuKernels& kernels, ThreadPool& pool,
           Workspace& workspace, std::span<const Sequence> sequences)
    : config_(config), cpu_{kernels, pool}, w_(workspace), sequences_(sequences) {
    w_.rows.clear();
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        const Sequence& sequence = sequences[s];
        const int n = static_cast<int>(sequence.tokens.size());
        expect(n >= 1, "a sequence has tokens");
        expect(sequence.start >= 0 && sequence.start <= sequence.kv->size(),
               "no position is skipped");
        segments_.push_back({n_, n, sequence.start});
        for (int i = 0; i < n; ++i) w_.rows.push_back({static_cast<int>(s), sequence.start + i});
        n_ += n;
    }
    expect(n_ <= w_.max_tokens, "the tokens fit the workspace");
}

void Pass::embed(const PackedMatrix& embedding) {
    const auto dim = static_cast<std::size_t>(config_.dim);
    for_each_row([&](int t) {
        const Sequence& sequence = sequence_of(t);
        const int token = w_.rows[static_cast<std::size_t>(t)].position - sequence.start;
        unpack_row(embedding, sequence.tokens[static_cast<std::size_t>(token)],
                   std::span(w_.x).subspan(static_cast<std::size_t>(t) * dim, dim));
    });
}

void Pass::compute_angles(std::span<const double> frequencies) {
    const int pairs = static_cast<int>(frequencies.size());
    for_each_row([&](int t) {
        angles_of(w_.rows[static_cast<std::size_t>(t)].position, frequencies,
                  w_.cosines.data() + offset(t, pairs), w_.sines.data() + offset(t, pairs));
    });
    if (is_retrofitted(config_)) extend_far_angles(frequencies);
}

/// Row 0 is the fixed distance, row 1 + b stands this far behind the beginning of block b.
void Pass::extend_far_angles(std::span<const double> frequencies) {
    int last = 0;
    for (const Workspace::Row& row : w_.rows) last = std::max(last, row.position);
    const std::size_t pairs = frequencies.size();
    const std::size_t rows = static_cast<std::size_t>(last / kBlockTokens) + 2;
    const int distance = far_distance(config_.msa);
    for (std::size_t row = w_.far_cosines.size() / pairs; row < rows; ++row) {
        w_.far_cosines.resize((row + 1) * pairs);
        w_.far_sines.resize((row + 1) * pairs);
        const int begin = row == 0 ? 0 : static_cast<int>(row - 1) * kBlockTokens;
        angles_of(begin + distance, frequencies, w_.far_cosines.data() + row * pairs,
                  w_.far_sines.data() + row * pairs);
    }
}

void Pass::normalize(const std::vector<float>& weight, bool quantised) {
    w_.normed.reserve(n_, config_.dim, quantised);
    for_each_row([&](int t) {
        cpu_.kernels.rmsnorm(w_.x.data() + offset(t, config_.dim), weight.data(), config_.dim,
                             config_.norm_eps, w_.normed.values.data() + offset(t, config_.dim));
        if (quantised) w_.normed.quantize_row(cpu_.kernels, t, config_.dim);
    });
}

/// q, k, v and the index branch's q and k.
void Pass::project_inputs(const PackedLayer& layer) {
    const Activations a = w_.normed.view(config_.dim);
    struct Part {
        const PackedMatrix& matrix;
        std::vector<float>& out;
    };
    const Part parts[] = {{layer.wq, w_.q},
                          {layer.wk, w_.k},
                          {layer.wv, w_.v},
                          {layer.index_wq, w_.index_q},
                          {layer.index_wk, w_.index_k}};
    int panels = 0;
    for (const Part& part : parts) panels += part.matrix.n_panels();
    // One loop over the panels of all, so that the threads meet once.
    cpu_.pool.parallel_for(
        panels, cpu_.pool.grain_for(panels, n_ == 1 ? 1 : 4, 2), [&](int begin, int end) {
            int first = 0;
            for (const Part& part : parts) {
                const int last = first + part.matrix.n_panels();
                const int from = std::max(begin, first);
                const int to = std::min(end, last);
                if (from < to)
                    cpu_.kernels.matmul(part.matrix, from - first, to - first, a, n_,
                                        part.out.data(),
                                        static_cast<std::size_t>(part.matrix.padded_rows()));
                first = last;
            }
        });
}

void Pass::rotate(float* head, int row) const {
    const auto angles = offset(row, config_.rope_dim / 2);
    const auto turn = config_.rope == RopeKind::interleaved ? cpu_.kernels.rope_interleaved
                                                            : cpu_.kernels.rope_half_split;
    turn(head, w_.cosines.data() + angles, w_.sines.data() + angles, config_.rope_dim);
}

/// `norm` is empty, of one head's size (each head on its own) or of all heads together.
void Pass::norm_heads(float* heads, int n_heads, int head_dim,
                      const std::vector<float>& norm) const {
    const int width = static_cast<int>(norm.size());
    if (width == 0) return;
    const int rows = width == head_dim ? n_heads : 1;
    for (int row = 0; row < rows; ++row) {
        float* x = heads + offset(row, width);
        cpu_.kernels.rmsnorm(x, norm.data(), width, config_.norm_eps, x);
    }
}

void Pass::norm_and_rotate(float* heads, int n_heads, int row, int head_dim,
                           const std::vector<float>& norm) const {
    norm_heads(heads, n_heads, head_dim, norm);
    for (int h = 0; h < n_heads; ++h) rotate(heads + offset(h, head_dim), row);
}

void Pass::rotate_and_store(const PackedLayer& layer, int index) {
    const LayerConfig& kinds = config_.layers[static_cast<std::size_t>(index)];
    const int head_dim = config_.head_dim;
    const int index_dim = config_.msa.index_dim;
    const bool sparse = kinds.attention == AttentionKind::msa;
    const float softmax_scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    const auto add_bias = [&](float* row, const std::vector<float>& bias) {
        if (!bias.empty()) cpu_.kernels.add(row, bias.data(), static_cast<int>(bias.size()));
    };
    for_each_row([&](int t) {
        float* q = w_.q.data() + offset(t, layer.wq.padded_rows());
        float* k = w_.k.data() + offset(t, layer.wk.padded_rows());
        float* v = w_.v.data() + offset(t, layer.wv.padded_rows());
        add_bias(q, layer.bq);
        add_bias(k, layer.bk);
        add_bias(v, layer.bv);
        norm_heads(q, config_.n_heads, head_dim, layer.q_norm);
        const int width = config_.n_heads * head_dim;
        if (kinds.attention == AttentionKind::retrofit) {
            float* unrotated = w_.index_q.data() + offset(t, width);
            std::copy_n(q, width, unrotated);
            cpu_.kernels.scale(unrotated, softmax_scale, width);
        }
        for (int h = 0; h < config_.n_heads; ++h) rotate(q + offset(h, head_dim), t);
        cpu_.kernels.scale(q, softmax_scale, width);
        if (sparse)
            norm_and_rotate(w_.index_q.data() + offset(t, layer.index_wq.padded_rows()),
                            kinds.n_kv_heads, t, index_dim, layer.index_q_norm);
        const int position = w_.rows[static_cast<std::size_t>(t)].position;
        BlockTable& kv = *sequence_of(t).kv;
        if (position < kv.size()) return;  // stored before, with the same bits
        std::byte* block = kv.writable_block(position);
        const int place = position % kBlockTokens;
        norm_and_rotate(k, kinds.n_kv_heads, t, head_dim, layer.k_norm);
        for (int h = 0; h < kinds.n_kv_heads; ++h)
            kv.layout().store(cpu_.kernels, block, index, h, place, k + offset(h, head_dim),
                              v + offset(h, head_dim));
        if (!sparse) return;
        float* index_k = w_.index_k.data() + offset(t, layer.index_wk.padded_rows());
        norm_and_rotate(index_k, 1, t, index_dim, layer.index_k_norm);
        kv.layout().store_index(cpu_.kernels, block, index, place, index_k);
    });
}

/// The last layer's keys and values are stored; what else it computes is only read for the last
/// token of sequences that ask for logits (or where choices are recorded).
void Pass::keep_last_rows(const PackedLayer& layer) {
    struct Rows {
        std::vector<float>& values;
        int stride;
    };
    const bool far = !w_.far_cosines.empty();  // index_q holds the unrotated queries then
    const Rows all[] = {
        {w_.x, config_.dim},
        {w_.q, layer.wq.padded_rows()},
        {w_.index_q, far ? config_.n_heads * config_.head_dim : layer.index_wq.padded_rows()}};
    int kept = 0;
    std::vector<Segment> segments;
    for (const Segment& segment : segments_) {
        const Sequence& sequence = sequence_of(segment.first_row);
        int wanted = segment.n_rows;
        if (!sequence.all_choices) wanted = sequence.logits.empty() ? 0 : 1;
        if (wanted == 0) continue;
        const int skipped = segment.n_rows - wanted;
        segments.push_back({kept, wanted, segment.start + skipped});
        for (int from = segment.first_row + skipped; wanted > 0; --wanted, ++from, ++kept) {
            if (from == kept) continue;
            for (const Rows& rows : all)
                std::copy_n(rows.values.begin() + offset(from, rows.stride), rows.stride,
                            rows.values.begin() + offset(kept, rows.stride));
            w_.rows[static_cast<std::size_t>(kept)] = w_.rows[static_cast<std::size_t>(from)];
        }
    }
    segments_ = std::move(segments);
    n_ = kept;
}

void Pass::attend(int index, const LayerConfig& layer, const PackedLayer& weights) {
    for (const Segment& segment : segments_) {
        const Sequence& sequence = sequence_of(segment.first_row);
        AttentionCall call;
        call.table = sequence.kv;
        call.layer = index;
        call.start = segment.start;
        call.n_tokens = segment.n_rows;
        call.n_heads = config_.n_heads;
        call.queries = w_.q.data() + offset(segment.first_row, weights.wq.padded_rows());
        call.out = w_.attended.values.data() +
                   offset(segment.first_row, config_.n_heads * config_.head_dim);
        if (layer.attention == AttentionKind::dense) {
            attend_dense(call, cpu_.kernels, cpu_.pool, w_.attention);
            continue;
        }
        if (layer.attention == AttentionKind::retrofit) {
            attend_far(call, segment);
            for (int row = segment.first_row; row < segment.first_row + segment.n_rows; ++row)
                report_blocks(index, row);
            continue;
        }
        IndexCall branch;
        branch.msa = &config_.msa;
        branch.stride = weights.index_wq.padded_rows();
        branch.queries =
            w_.index_q.data() + offset(segment.first_row, weights.index_wq.padded_rows());
        branch.selected =
            w_.selected.data() + offset(segment.first_row, layer.n_kv_heads * config_.msa.top_k);
        attend_msa(call, branch, cpu_.kernels, cpu_.pool, w_.attention);
        for (int row = segment.first_row; row < segment.first_row + segment.n_rows; ++row)
            report_blocks(index, row);
    }
}

void Pass::attend_far(const AttentionCall& call, const Segment& segment) {
    RetrofitCall retrofit;
    retrofit.msa = &config_.msa;
    retrofit.rope = config_.rope;
    retrofit.rope_dim = config_.rope_dim;
    retrofit.queries =
        w_.index_q.data() + offset(segment.first_row, config_.n_heads * config_.head_dim);
    retrofit.far_cosines = w_.far_cosines.data();
    retrofit.far_sines = w_.far_sines.data();
    retrofit.selected =
        w_.selected.data() + offset(segment.first_row, call.n_kv_heads() * config_.msa.top_k);
    attend_retrofit(call, retrofit, cpu_.kernels, cpu_.pool, w_.attention);
}

/// Whether the choices of a row are recorded.
bool Pass::is_reported(int row) const {
    const Sequence& sequence = sequence_of(row);
    if (sequence.choices == nullptr || sequence.all_choices) return sequence.choices != nullptr;
    const int last = sequence.start + static_cast<int>(sequence.tokens.size()) - 1;
    return !sequence.logits.empty() && w_.rows[static_cast<std::size_t>(row)].position == last;
}

void Pass::report_blocks(int index, int row) const {
    if (!is_reported(row)) return;
    const int top_k = config_.msa.top_k;
    const int width = config_.layers[static_cast<std::size_t>(index)].n_kv_heads * top_k;
    sequence_of(row).choices->on_blocks(
        index, w_.rows[static_cast<std::size_t>(row)].position, top_k,
        {w_.selected.data() + offset(row, width), static_cast<std::size_t>(width)});
}

void Pass::report_experts(int index) const {
    const int used = config_.moe.n_used;
    for (int row = 0; row < n_; ++row)
        if (is_reported(row))
            sequence_of(row).choices->on_experts(
                index, w_.rows[static_cast<std::size_t>(row)].position,
                {w_.moe.experts.data() + offset(row, used), static_cast<std::size_t>(used)});
}

/// x += wo * attended; each thread adds the channels that it computed.
void Pass::project_attended(const PackedMatrix& wo) {
    const int width = config_.n_heads * config_.head_dim;
    if (wo.quantised()) {
        w_.attended.reserve(n_, width, true);
        for_each_row([&](int t) { w_.attended.quantize_row(cpu_.kernels, t, width); });
    }
    const Activations a = w_.attended.view(width);
    const int stride = wo.padded_rows();
    const int panels = wo.n_panels();
    cpu_.pool.parallel_for(
        panels, cpu_.pool.grain_for(panels, n_ == 1 ? 1 : 4, 2), [&](int begin, int end) {
            cpu_.kernels.matmul(wo, begin, end, a, n_, w_.projected.data(),
                                static_cast<std::size_t>(stride));
            const int first = begin * kPanelRows;
            const int count = std::min(end * kPanelRows, wo.rows) - first;
            for (int t = 0; t < n_; ++t)
                cpu_.kernels.add(w_.x.data() + offset(t, config_.dim) + first,
                                 w_.projected.data() + offset(t, stride) + first, count);
        });
}

void Pass::feed_forward(const PackedLayer& layer, int index) {
    const Activations a = w_.normed.view(config_.dim);
    if (config_.layers[static_cast<std::size_t>(index)].mlp == MlpKind::moe) {
        add_experts(config_, layer, cpu_, a, n_, w_.moe, w_.mlp, w_.projected.data(), w_.x.data());
        report_experts(index);
        return;
    }
    const MlpGroup all{&layer.mlp, 0, n_};
    gated_mlps(config_, cpu_, {&all, 1}, a, w_.mlp, w_.projected.data(), w_.x.data());
}

void Pass::layer(const PackedLayer& layer, int index, std::span<const double> frequencies) {
    normalize(layer.attn_norm, layer.reads_codes());
    project_inputs(layer);
    rotate_and_store(layer, index);
    const AttentionKind kind = config_.layers[static_cast<std::size_t>(index)].attention;
    if (kind == AttentionKind::retrofit)
        for (const Segment& segment : segments_)
            seal_blocks(config_, cpu_, *sequence_of(segment.first_row).kv, segment.start,
                        segment.start + segment.n_rows, index, frequencies);
    if (index + 1 == config_.n_layers()) keep_last_rows(layer);
    if (n_ == 0) return;
    attend(index, config_.layers[static_cast<std::size_t>(index)], layer);
    project_attended(layer.wo);

    const bool experts_read_codes = !layer.experts.empty() && (layer.experts[0].gate.quantised() ||
                                                               layer.experts[0].up.quantised());
    normalize(layer.ffn_norm, layer.mlp.gate.quantised() || layer.mlp.up.quantised() ||
                                  layer.router.quantised() || experts_read_codes);
    feed_forward(layer, index);
}

void Pass::head(const PackedWeights& weights) {
    int rows = 0;
    for (const Segment& segment : segments_) {
        const int last = segment.first_row + segment.n_rows - 1;
        if (sequence_of(last).logits.empty()) continue;
        if (rows != last) {
            std::copy_n(w_.x.begin() + offset(last, config_.dim), config_.dim,
                        w_.x.begin() + offset(rows, config_.dim));
            w_.rows[static_cast<std::size_t>(rows)] = w_.rows[static_cast<std::size_t>(last)];
        }
        ++rows;
    }
    if (rows == 0) return;
    n_ = rows;
    normalize(weights.output_norm, weights.output.quantised());
    const Activations a = w_.normed.view(config_.dim);
    const int panels = weights.output.n_panels();
    const auto stride = static_cast<std::size_t>(weights.output.padded_rows());
    w_.logits.resize(std::max(w_.logits.size(), static_cast<std::size_t>(rows) * stride));
    cpu_.pool.parallel_for(panels, cpu_.pool.grain_for(panels, 4, 2), [&](int begin, int end) {
        cpu_.kernels.matmul(weights.output, begin, end, a, rows, w_.logits.data(), stride);
    });
    for (int t = 0; t < rows; ++t) {
        const std::span<float> out = sequence_of(t).logits;
        std::copy_n(w_.logits.begin() + static_cast<std::ptrdiff_t>(stride) * t, out.size(),
                    out.begin());
    }
}

void refuse(const ModelConfig& config, const std::string& what) {
    throw Error(fmt::format("model of architecture '{}': {}", config.architecture, what));
}

void check_head(const ModelConfig& config, const char* what, int dim) {
    if (dim % 8 != 0 || dim < 8 || dim > kLargestHeadDim)
        refuse(config, fmt::format("{} of {} channels; expected a multiple of 8 up to {}", what,
                                   dim, kLargestHeadDim));
    if (config.rope_dim % 2 != 0 || config.rope_dim > dim)
        refuse(config, fmt::format("{} rotary channels in {} of {}", config.rope_dim, what, dim));
}

void check_msa(const ModelConfig& config) {
    const MsaConfig& msa = config.msa;
    check_head(config, "index heads", msa.index_dim);
    const bool fits = msa.block_tokens >= 8 && msa.block_tokens <= kBlockTokens &&
                      kBlockTokens % msa.block_tokens == 0;
    if (!fits)
        refuse(config, fmt::format("sparse attention with blocks of {} tokens; expected 8, 16, 32, "
                                   "64 or 128",
                                   msa.block_tokens));
    if (msa.top_k < 1 || msa.top_k > kMostSelectedBlocks)
        refuse(config, fmt::format("sparse attention selects {} blocks; expected 1 to {}",
                                   msa.top_k, kMostSelectedBlocks));
}

void check_supported(const ModelConfig& config, const PackedWeights& weights) {
    check_head(config, "heads", config.head_dim);
    for (int i = 0; i < config.n_layers(); ++i) {
        const LayerConfig& layer = config.layers[static_cast<std::size_t>(i)];
        if (layer.n_kv_heads < 1 || config.n_heads % layer.n_kv_heads != 0)
            refuse(config, fmt::format("layer {}: {} query heads do not divide among {} KV heads",
                                       i, config.n_heads, layer.n_kv_heads));
        if (layer.attention == AttentionKind::msa) check_msa(config);
        if (layer.attention == AttentionKind::retrofit && !is_retrofitted(config))
            refuse(config, "only some layers are retrofitted");
        if (layer.attention == AttentionKind::msa && layer.n_kv_heads > kMostSelectedBlocks)
            refuse(config, fmt::format("layer {}: {} index heads; expected at most {}", i,
                                       layer.n_kv_heads, kMostSelectedBlocks));
        if (layer.mlp == MlpKind::moe &&
            (config.moe.n_used < 1 || config.moe.n_used > config.moe.n_experts))
            refuse(config, fmt::format("{} of {} experts are used", config.moe.n_used,
                                       config.moe.n_experts));
    }
    expect(weights.layers.size() == config.layers.size(), "weights for every layer");
}

}  // namespace

Workspace::Workspace(const ModelConfig& config, const PackedWeights& weights, int tokens)
    : max_tokens(tokens) {
    const auto n = static_cast<std::size_t>(tokens);
    int q_rows = 0;
    int kv_rows = 0;
    int index_rows = 0;
    int index_k_rows = 0;
    for (const PackedLayer& layer : weights.layers) {
        q_rows = std::max(q_rows, layer.wq.padded_rows());
        kv_rows = std::max({kv_rows, layer.wk.padded_rows(), layer.wv.padded_rows()});
        index_rows = std::max(index_rows, layer.index_wq.padded_rows());
        index_k_rows = std::max(index_k_rows, layer.index_wk.padded_rows());
    }
    const auto floats = [n](int columns) {
        return std::vector<float>(n * static_cast<std::size_t>(columns));
    };
    rows.reserve(n);
    x = floats(config.dim);
    q = floats(q_rows);
    k = floats(kv_rows);
    v = floats(kv_rows);
    index_q = floats(is_retrofitted(config) ? config.n_heads * config.head_dim : index_rows);
    index_k = floats(index_k_rows);
    attended.values = floats(config.n_heads * config.head_dim);
    projected = floats((config.dim + kPanelRows - 1) / kPanelRows * kPanelRows);
    cosines = floats(config.rope_dim / 2);
    sines = floats(config.rope_dim / 2);
    if (index_rows > 0 || is_retrofitted(config))
        selected.resize(n * static_cast<std::size_t>(config.n_kv_heads * config.msa.top_k));
}

Transformer::Transformer(const ModelConfig& config, const PackedWeights& weights,
                         const CpuKernels& kernels, ThreadPool& pool)
    : config_(config), weights_(weights), kernels_(kernels), pool_(pool) {
    check_supported(config, weights);
    const double log_theta = log_f64(config.rope_theta);
    for (int i = 0; i < config.rope_dim / 2; ++i) {
        double frequency = exp_f64(-2.0 * i / config.rope_dim * log_theta);
        if (!weights.rope_divisors.empty())
            frequency /= static_cast<double>(weights.rope_divisors[static_cast<std::size_t>(i)]);
        frequencies_.push_back(frequency);
    }
}

void Transformer::seal(BlockTable& table, int first, int last) const {
    if (!is_retrofitted(config_)) return;
    for (int layer = 0; layer < config_.n_layers(); ++layer)
        seal_blocks(config_, {kernels_, pool_}, table, first, last, layer, frequencies_);
}

void Transformer::forward(std::span<const Sequence> sequences, Workspace& workspace) const {
    Pass pass(config_, kernels_, pool_, workspace, sequences);
    pass.embed(weights_.token_embedding);
    pass.compute_angles(frequencies_);
    for (int i = 0; i < config_.n_layers(); ++i)
        pass.layer(weights_.layers[static_cast<std::size_t>(i)], i, frequencies_);
    pass.head(weights_);
}

}  // namespace skein::model
