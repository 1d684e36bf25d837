#include "model/packed_weights.h"

#include <algorithm>
#include <span>
#include <utility>

#include "model/hash.h"
#include "model/load/quant.h"

namespace skein::model {
namespace {

constexpr std::size_t kAlignment = 64;

std::vector<float> read_vector(const Tensor* tensor) {
    if (tensor == nullptr) return {};
    std::vector<float> values(static_cast<std::size_t>(tensor->n_rows() * tensor->row_length()));
    dequantize(tensor->type, tensor->data, values);
    return values;
}

/// The factor of a norm. Source: Gemma's RMSNorm, which MiniMax-M3 uses.
std::vector<float> read_norm(const Tensor* tensor, bool zero_centred) {
    std::vector<float> values = read_vector(tensor);
    if (zero_centred)
        for (float& value : values) value += 1.0F;
    return values;
}

/// First every matrix is planned, then one buffer is taken, then all are packed into it.
class Packer {
  public:
    void plan(const Tensor& tensor, PackedMatrix& target) {
        target = plan_packing(tensor);
        jobs_.push_back({&tensor, &target, bytes_});
        bytes_ += (target.bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }

    HugeBuffer pack(ThreadPool& pool) {
        HugeBuffer memory(bytes_, "the weights");
        Checksum sum;
        for (const Job& job : jobs_) {
            std::byte* data = memory.data() + job.offset;
            const int panels = job.target->n_panels();
            pool.parallel_for(panels, pool.grain_for(panels, 4), [&](int begin, int end) {
                pack_panels(*job.tensor, *job.target, begin, end, data);
            });
            job.target->data = data;
            add_sample(*job.target, sum);
        }
        fingerprint_ = sum.value();
        return memory;
    }

    /// Of the matrices, after pack().
    std::uint64_t fingerprint() const { return fingerprint_; }

  private:
    static void add_sample(const PackedMatrix& matrix, Checksum& sum) {
        constexpr std::size_t kSample = 4096;
        sum.add_value(matrix.rows);
        sum.add_value(matrix.columns);
        sum.add_value(matrix.codes);
        const std::size_t size = std::min(kSample, matrix.bytes());
        sum.add({matrix.data, size});
        sum.add({matrix.data + matrix.bytes() - size, size});
    }

    struct Job {
        const Tensor* tensor;
        PackedMatrix* target;
        std::size_t offset;
    };
    std::vector<Job> jobs_;
    std::uint64_t fingerprint_ = 0;
    std::size_t bytes_ = 0;
};

void plan_optional(Packer& packer, const Tensor* tensor, PackedMatrix& target) {
    if (tensor != nullptr) packer.plan(*tensor, target);
}

void plan_experts(const LayerWeights& from, PackedLayer& to, Packer& packer) {
    to.router_bias = read_vector(from.router_bias);
    plan_optional(packer, from.router, to.router);
    plan_optional(packer, from.shared_gate, to.mlp.gate);
    plan_optional(packer, from.shared_up, to.mlp.up);
    plan_optional(packer, from.shared_down, to.mlp.down);
    to.experts.resize(from.expert_gate.size());
    for (std::size_t e = 0; e < to.experts.size(); ++e) {
        packer.plan(*from.expert_gate[e], to.experts[e].gate);
        packer.plan(*from.expert_up[e], to.experts[e].up);
        packer.plan(*from.expert_down[e], to.experts[e].down);
    }
}

void plan_layer(const LayerWeights& from, PackedLayer& to, bool zero_centred, Packer& packer) {
    to.attn_norm = read_norm(from.attn_norm, zero_centred);
    to.ffn_norm = read_norm(from.ffn_norm, zero_centred);
    to.q_norm = read_norm(from.q_norm, zero_centred);
    to.k_norm = read_norm(from.k_norm, zero_centred);
    to.index_q_norm = read_norm(from.index_q_norm, zero_centred);
    to.index_k_norm = read_norm(from.index_k_norm, zero_centred);
    to.bq = read_vector(from.bq);
    to.bk = read_vector(from.bk);
    to.bv = read_vector(from.bv);
    packer.plan(*from.wq, to.wq);
    packer.plan(*from.wk, to.wk);
    packer.plan(*from.wv, to.wv);
    packer.plan(*from.wo, to.wo);
    plan_optional(packer, from.index_wq, to.index_wq);
    plan_optional(packer, from.index_wk, to.index_wk);
    plan_optional(packer, from.w_gate, to.mlp.gate);
    plan_optional(packer, from.w_up, to.mlp.up);
    plan_optional(packer, from.w_down, to.mlp.down);
    plan_experts(from, to, packer);
}

std::uint64_t fingerprint_of(const PackedWeights& weights, std::uint64_t matrices) {
    Checksum sum;
    sum.add_value(matrices);
    const auto add = [&](const std::vector<float>& values) {
        sum.add(std::as_bytes(std::span(values)));
    };
    add(weights.output_norm);
    add(weights.rope_divisors);
    for (const PackedLayer& layer : weights.layers)
        for (const auto* values :
             {&layer.attn_norm, &layer.ffn_norm, &layer.q_norm, &layer.k_norm, &layer.index_q_norm,
              &layer.index_k_norm, &layer.bq, &layer.bk, &layer.bv, &layer.router_bias})
            add(*values);
    return sum.value();
}

/// Of all experts, only those that one token uses count.
std::size_t bytes_of(const PackedLayer& layer, int experts_used) {
    std::size_t bytes = layer.wq.bytes() + layer.wk.bytes() + layer.wv.bytes() + layer.wo.bytes() +
                        layer.index_wq.bytes() + layer.index_wk.bytes() + layer.mlp.bytes() +
                        layer.router.bytes();
    if (!layer.experts.empty())
        bytes += layer.experts[0].bytes() * static_cast<std::size_t>(experts_used);
    return bytes;
}

}  // namespace

bool PackedLayer::reads_codes() const {
    return wq.quantised() || wk.quantised() || wv.quantised() || index_wq.quantised() ||
           index_wk.quantised();
}

PackedWeights pack_weights(const ModelConfig& config, const Weights& weights, ThreadPool& pool) {
    PackedWeights packed;
    packed.output_norm = read_norm(weights.output_norm, config.zero_centred_norms);
    packed.rope_divisors = read_vector(weights.rope_freqs);
    packed.layers.resize(weights.layers.size());
    Packer packer;
    const bool tied = weights.output == weights.token_embedding;
    packer.plan(*weights.token_embedding, packed.token_embedding);
    if (!tied) packer.plan(*weights.output, packed.output);
    for (std::size_t i = 0; i < weights.layers.size(); ++i)
        plan_layer(weights.layers[i], packed.layers[i], config.zero_centred_norms, packer);
    packed.memory = packer.pack(pool);
    packed.fingerprint = fingerprint_of(packed, packer.fingerprint());
    if (tied) packed.output = packed.token_embedding;
    packed.bytes_per_token = packed.output.bytes();
    for (const PackedLayer& layer : packed.layers)
        packed.bytes_per_token += bytes_of(layer, config.moe.n_used);
    return packed;
}

}  // namespace skein::model
