#include "model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/cpu/math.h"
#include "model/error.h"
#include "model/expect.h"

namespace skein::model {
namespace {

std::ptrdiff_t offset(int row, int stride) {
    return static_cast<std::ptrdiff_t>(row) * stride;
}

/// The state of one call, so that the steps below read as formulas.
class Pass {
  public:
    Pass(const ModelConfig& config, const CpuKernels& kernels, ThreadPool& pool,
         Workspace& workspace, BlockTable& kv, int start, int n)
        : config_(config),
          kernels_(kernels),
          pool_(pool),
          w_(workspace),
          kv_(kv),
          start_(start),
          n_(n) {}

    void embed(const PackedMatrix& embedding, std::span<const Token> tokens);
    void compute_angles(std::span<const double> frequencies);
    void layer(const PackedLayer& layer, int index);
    void head(const PackedWeights& weights, std::span<float> logits);

  private:
    template <typename Body>
    void for_each_token(const Body& body) {
        pool_.parallel_for(n_, pool_.grain_for(n_, 4), [&](int begin, int end) {
            for (int t = begin; t < end; ++t) body(t);
        });
    }
    void normalize(const std::vector<float>& weight, bool quantised);
    void quantize(const float* row, int t, int columns);
    Activations input(const float* values, int columns) const;
    void query_key_value(const PackedLayer& layer);
    void rotate_and_store(const PackedLayer& layer, int index);
    void rotate_head(float* head, int t, const std::vector<float>& norm);
    void attend(int index);
    void feed_forward(const PackedLayer& layer);
    void add_projection(const PackedMatrix& matrix, const Activations& a);

    const ModelConfig& config_;
    const CpuKernels& kernels_;
    ThreadPool& pool_;
    Workspace& w_;
    BlockTable& kv_;
    int start_;
    int n_;
};

void Pass::embed(const PackedMatrix& embedding, std::span<const Token> tokens) {
    const auto dim = static_cast<std::size_t>(config_.dim);
    for_each_token([&](int t) {
        unpack_row(embedding, tokens[static_cast<std::size_t>(t)],
                   std::span(w_.x).subspan(static_cast<std::size_t>(t) * dim, dim));
    });
}

void Pass::compute_angles(std::span<const double> frequencies) {
    const int pairs = static_cast<int>(frequencies.size());
    for_each_token([&](int t) {
        for (int i = 0; i < pairs; ++i) {
            const SinCos angle =
                sincos_f64((start_ + t) * frequencies[static_cast<std::size_t>(i)]);
            const auto at = static_cast<std::size_t>(offset(t, pairs) + i);
            w_.cosines[at] = static_cast<float>(angle.cos);
            w_.sines[at] = static_cast<float>(angle.sin);
        }
    });
}

void Pass::quantize(const float* row, int t, int columns) {
    const int blocks = columns / kBlockColumns;
    kernels_.quantize_row(row, columns, w_.codes.data() + offset(t, columns),
                          w_.scales.data() + offset(t, blocks), w_.sums.data() + offset(t, blocks));
}

Activations Pass::input(const float* values, int columns) const {
    return {columns, values, w_.codes.data(), w_.scales.data(), w_.sums.data()};
}

void Pass::normalize(const std::vector<float>& weight, bool quantised) {
    for_each_token([&](int t) {
        float* out = w_.normed.data() + offset(t, config_.dim);
        kernels_.rmsnorm(w_.x.data() + offset(t, config_.dim), weight.data(), config_.dim,
                         config_.norm_eps, out);
        if (quantised) quantize(out, t, config_.dim);
    });
}

void Pass::query_key_value(const PackedLayer& layer) {
    const Activations a = input(w_.normed.data(), config_.dim);
    struct Part {
        const PackedMatrix& matrix;
        std::vector<float>& out;
    };
    const Part parts[3] = {{layer.wq, w_.q}, {layer.wk, w_.k}, {layer.wv, w_.v}};
    int panels = 0;
    for (const Part& part : parts) panels += part.matrix.n_panels();
    // One loop over the panels of all three, so that the threads meet once.
    pool_.parallel_for(
        panels, pool_.grain_for(panels, n_ == 1 ? 1 : 4, 2), [&](int begin, int end) {
            int first = 0;
            for (const Part& part : parts) {
                const int last = first + part.matrix.n_panels();
                const int from = std::max(begin, first);
                const int to = std::min(end, last);
                if (from < to)
                    kernels_.matmul(part.matrix, from - first, to - first, a, n_, part.out.data(),
                                    static_cast<std::size_t>(part.matrix.padded_rows()));
                first = last;
            }
        });
}

void Pass::rotate_head(float* head, int t, const std::vector<float>& norm) {
    if (!norm.empty())
        kernels_.rmsnorm(head, norm.data(), config_.head_dim, config_.norm_eps, head);
    const auto angles = offset(t, config_.rope_dim / 2);
    const auto rope = config_.rope == RopeKind::interleaved ? kernels_.rope_interleaved
                                                            : kernels_.rope_half_split;
    rope(head, w_.cosines.data() + angles, w_.sines.data() + angles, config_.rope_dim);
}

void Pass::rotate_and_store(const PackedLayer& layer, int index) {
    const int head_dim = config_.head_dim;
    const int n_kv_heads = kv_.layout().n_kv_heads(index);
    const float softmax_scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    const auto add_bias = [&](float* row, const std::vector<float>& bias) {
        if (!bias.empty()) kernels_.add(row, bias.data(), static_cast<int>(bias.size()));
    };
    for_each_token([&](int t) {
        float* q = w_.q.data() + offset(t, layer.wq.padded_rows());
        float* k = w_.k.data() + offset(t, layer.wk.padded_rows());
        float* v = w_.v.data() + offset(t, layer.wv.padded_rows());
        add_bias(q, layer.bq);
        add_bias(k, layer.bk);
        add_bias(v, layer.bv);
        for (int h = 0; h < config_.n_heads; ++h)
            rotate_head(q + offset(h, head_dim), t, layer.q_norm);
        kernels_.scale(q, softmax_scale, config_.n_heads * head_dim);
        if (start_ + t < kv_.size()) return;  // stored before, with the same bits
        std::byte* block = kv_.writable_block(start_ + t);
        for (int h = 0; h < n_kv_heads; ++h) {
            rotate_head(k + offset(h, head_dim), t, layer.k_norm);
            kv_.layout().store(kernels_, block, index, h, (start_ + t) % kBlockTokens,
                               k + offset(h, head_dim), v + offset(h, head_dim));
        }
    });
}

void Pass::attend(int index) {
    DenseAttention call;
    call.table = &kv_;
    call.layer = index;
    call.start = start_;
    call.n_tokens = n_;
    call.n_heads = config_.n_heads;
    call.queries = w_.q.data();
    call.out = w_.attended.data();
    attend_dense(call, kernels_, pool_, w_.attention);
}

/// x += matrix * a; each thread adds the channels that it computed.
void Pass::add_projection(const PackedMatrix& matrix, const Activations& a) {
    const int stride = matrix.padded_rows();
    const int panels = matrix.n_panels();
    pool_.parallel_for(panels, pool_.grain_for(panels, n_ == 1 ? 1 : 4, 2),
                       [&](int begin, int end) {
                           kernels_.matmul(matrix, begin, end, a, n_, w_.projected.data(),
                                           static_cast<std::size_t>(stride));
                           const int first = begin * kPanelRows;
                           const int count = std::min(end * kPanelRows, matrix.rows) - first;
                           for (int t = 0; t < n_; ++t)
                               kernels_.add(w_.x.data() + offset(t, config_.dim) + first,
                                            w_.projected.data() + offset(t, stride) + first, count);
                       });
}

void Pass::feed_forward(const PackedLayer& layer) {
    const Activations a = input(w_.normed.data(), config_.dim);
    const int hidden = layer.w_down.columns;
    const int stride = layer.w_gate.padded_rows();
    const int panels = layer.w_gate.n_panels();
    pool_.parallel_for(
        panels, pool_.grain_for(panels, n_ == 1 ? 1 : 4, 2), [&](int begin, int end) {
            const auto row_stride = static_cast<std::size_t>(stride);
            kernels_.matmul(layer.w_gate, begin, end, a, n_, w_.gate.data(), row_stride);
            kernels_.matmul(layer.w_up, begin, end, a, n_, w_.up.data(), row_stride);
            const int first = begin * kPanelRows;
            const int count = std::min(end * kPanelRows, hidden) - first;
            for (int t = 0; t < n_; ++t) {
                float* gate = w_.gate.data() + offset(t, stride) + first;
                kernels_.swiglu(gate, w_.up.data() + offset(t, stride) + first, count, gate);
            }
        });
    if (stride != hidden)  // close the gaps of padded rows: the next projection reads dense rows
        for (int t = 1; t < n_; ++t)
            std::memmove(w_.gate.data() + offset(t, hidden), w_.gate.data() + offset(t, stride),
                         static_cast<std::size_t>(hidden) * sizeof(float));
    if (layer.w_down.quantised())
        for_each_token([&](int t) { quantize(w_.gate.data() + offset(t, hidden), t, hidden); });
    add_projection(layer.w_down, input(w_.gate.data(), hidden));
}

void Pass::layer(const PackedLayer& layer, int index) {
    normalize(layer.attn_norm,
              layer.wq.quantised() || layer.wk.quantised() || layer.wv.quantised());
    query_key_value(layer);
    rotate_and_store(layer, index);
    attend(index);
    const int width = config_.n_heads * config_.head_dim;
    if (layer.wo.quantised())
        for_each_token([&](int t) { quantize(w_.attended.data() + offset(t, width), t, width); });
    add_projection(layer.wo, input(w_.attended.data(), width));

    normalize(layer.ffn_norm, layer.w_gate.quantised() || layer.w_up.quantised());
    feed_forward(layer);
}

void Pass::head(const PackedWeights& weights, std::span<float> logits) {
    const float* last = w_.x.data() + offset(n_ - 1, config_.dim);
    kernels_.rmsnorm(last, weights.output_norm.data(), config_.dim, config_.norm_eps,
                     w_.normed.data());
    if (weights.output.quantised()) quantize(w_.normed.data(), 0, config_.dim);
    const Activations a = input(w_.normed.data(), config_.dim);
    const int panels = weights.output.n_panels();
    pool_.parallel_for(panels, pool_.grain_for(panels, 4, 2), [&](int begin, int end) {
        kernels_.matmul(weights.output, begin, end, a, 1, w_.logits.data(), w_.logits.size());
    });
    std::copy_n(w_.logits.begin(), logits.size(), logits.begin());
}

void refuse(const ModelConfig& config, const std::string& what) {
    throw Error(fmt::format("model of architecture '{}': {}", config.architecture, what));
}

void check_supported(const ModelConfig& config, const PackedWeights& weights) {
    if (config.head_dim % 8 != 0 || config.head_dim > kLargestHeadDim)
        refuse(config, fmt::format("heads of {} channels; expected a multiple of 8 up to {}",
                                   config.head_dim, kLargestHeadDim));
    if (config.rope_dim % 2 != 0 || config.rope_dim > config.head_dim)
        refuse(config,
               fmt::format("{} rotary channels in heads of {}", config.rope_dim, config.head_dim));
    for (int i = 0; i < config.n_layers(); ++i) {
        const LayerConfig& layer = config.layers[static_cast<std::size_t>(i)];
        if (layer.attention != AttentionKind::dense || layer.mlp != MlpKind::dense)
            refuse(config, fmt::format("layer {} has sparse attention or experts, which this build "
                                       "cannot evaluate; expected dense attention and SwiGLU",
                                       i));
        if (layer.n_kv_heads < 1 || config.n_heads % layer.n_kv_heads != 0)
            refuse(config, fmt::format("layer {}: {} query heads do not divide among {} KV heads",
                                       i, config.n_heads, layer.n_kv_heads));
    }
    expect(weights.layers.size() == config.layers.size(), "weights for every layer");
}

}  // namespace

Workspace::Workspace(const ModelConfig& config, const PackedWeights& weights, int tokens)
    : max_tokens(tokens) {
    const auto n = static_cast<std::size_t>(tokens);
    int q_rows = 0;
    int kv_rows = 0;
    int hidden = 0;
    int widest = config.dim;
    for (const PackedLayer& layer : weights.layers) {
        q_rows = std::max(q_rows, layer.wq.padded_rows());
        kv_rows = std::max({kv_rows, layer.wk.padded_rows(), layer.wv.padded_rows()});
        hidden = std::max(hidden, layer.w_gate.padded_rows());
        widest = std::max({widest, layer.wo.columns, layer.w_down.columns});
    }
    const auto floats = [n](int columns) {
        return std::vector<float>(n * static_cast<std::size_t>(columns));
    };
    x = floats(config.dim);
    normed = floats(config.dim);
    q = floats(q_rows);
    k = floats(kv_rows);
    v = floats(kv_rows);
    attended = floats(config.n_heads * config.head_dim);
    gate = floats(hidden);
    up = floats(hidden);
    projected = floats((config.dim + kPanelRows - 1) / kPanelRows * kPanelRows);
    cosines = floats(config.rope_dim / 2);
    sines = floats(config.rope_dim / 2);
    logits.resize(static_cast<std::size_t>(weights.output.padded_rows()));
    codes.resize(n * static_cast<std::size_t>(widest));
    scales = floats(widest / kBlockColumns);
    sums = floats(widest / kBlockColumns);
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

void Transformer::forward(std::span<const Token> tokens, int start, BlockTable& kv,
                          Workspace& workspace, std::span<float> logits) const {
    const int n = static_cast<int>(tokens.size());
    expect(n >= 1 && n <= workspace.max_tokens, "a chunk fits the workspace");
    expect(start >= 0 && start <= kv.size(), "no position is skipped");
    Pass pass(config_, kernels_, pool_, workspace, kv, start, n);
    pass.embed(weights_.token_embedding, tokens);
    pass.compute_angles(frequencies_);
    for (int i = 0; i < config_.n_layers(); ++i)
        pass.layer(weights_.layers[static_cast<std::size_t>(i)], i);
    if (!logits.empty()) pass.head(weights_, logits);
}

}  // namespace skein::model
