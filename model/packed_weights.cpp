#include "model/packed_weights.h"

#include <utility>

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
        for (const Job& job : jobs_) {
            std::byte* data = memory.data() + job.offset;
            const int panels = job.target->n_panels();
            pool.parallel_for(panels, pool.grain_for(panels, 4), [&](int begin, int end) {
                pack_panels(*job.tensor, *job.target, begin, end, data);
            });
            job.target->data = data;
        }
        return memory;
    }

  private:
    struct Job {
        const Tensor* tensor;
        PackedMatrix* target;
        std::size_t offset;
    };
    std::vector<Job> jobs_;
    std::size_t bytes_ = 0;
};

void plan_layer(const LayerWeights& from, PackedLayer& to, Packer& packer) {
    to.attn_norm = read_vector(from.attn_norm);
    to.ffn_norm = read_vector(from.ffn_norm);
    to.q_norm = read_vector(from.q_norm);
    to.k_norm = read_vector(from.k_norm);
    to.bq = read_vector(from.bq);
    to.bk = read_vector(from.bk);
    to.bv = read_vector(from.bv);
    packer.plan(*from.wq, to.wq);
    packer.plan(*from.wk, to.wk);
    packer.plan(*from.wv, to.wv);
    packer.plan(*from.wo, to.wo);
    packer.plan(*from.w_gate, to.w_gate);
    packer.plan(*from.w_up, to.w_up);
    packer.plan(*from.w_down, to.w_down);
}

std::size_t bytes_of(const PackedLayer& layer) {
    return layer.wq.bytes() + layer.wk.bytes() + layer.wv.bytes() + layer.wo.bytes() +
           layer.w_gate.bytes() + layer.w_up.bytes() + layer.w_down.bytes();
}

}  // namespace

PackedWeights pack_weights(const Weights& weights, ThreadPool& pool) {
    PackedWeights packed;
    packed.output_norm = read_vector(weights.output_norm);
    packed.rope_divisors = read_vector(weights.rope_freqs);
    packed.layers.resize(weights.layers.size());
    Packer packer;
    const bool tied = weights.output == weights.token_embedding;
    packer.plan(*weights.token_embedding, packed.token_embedding);
    if (!tied) packer.plan(*weights.output, packed.output);
    for (std::size_t i = 0; i < weights.layers.size(); ++i)
        plan_layer(weights.layers[i], packed.layers[i], packer);
    packed.memory = packer.pack(pool);
    if (tied) packed.output = packed.token_embedding;
    packed.bytes_per_token = packed.output.bytes();
    for (const PackedLayer& layer : packed.layers) packed.bytes_per_token += bytes_of(layer);
    return packed;
}

}  // namespace skein::model
