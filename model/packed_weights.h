#pragma once
// The weights of a transformer as the kernels read them, in one piece of memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/cpu/huge_buffer.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/thread_pool.h"
#include "model/load/weights.h"

namespace skein::model {

/// gate, up and down projection of a gated MLP: a dense one, a routed or the shared expert.
struct PackedMlp {
    PackedMatrix gate, up, down;
    std::size_t bytes() const { return gate.bytes() + up.bytes() + down.bytes(); }
};

/// Vectors and matrices that the layer lacks are empty. Names and shapes as in LayerWeights; norms
/// multiply as they are (a zero-centred norm has got its 1).
struct PackedLayer {
    std::vector<float> attn_norm, ffn_norm;
    std::vector<float> q_norm, k_norm, index_q_norm, index_k_norm;
    std::vector<float> bq, bk, bv;
    PackedMatrix wq, wk, wv, wo;
    PackedMatrix index_wq, index_wk;
    PackedMlp mlp;  ///< the dense MLP, or the shared expert
    PackedMatrix router;
    std::vector<float> router_bias;
    std::vector<PackedMlp> experts;
    bool reads_codes() const;  ///< whether an input projection of the attention is quantised
};

struct PackedWeights {
    PackedMatrix token_embedding;
    PackedMatrix output;  ///< shares the embedding's memory when the head is tied
    std::vector<float> output_norm;
    std::vector<float> rope_divisors;  ///< [rope_dim / 2], empty when there are none
    std::vector<PackedLayer> layers;
    std::size_t bytes_per_token = 0;  ///< matrix bytes read to decode one token
    /// Tells models apart: a checksum of shapes, norms and samples of every matrix.
    std::uint64_t fingerprint = 0;
    HugeBuffer memory;
};

/// Copies and re-orders, and adds the 1 to zero-centred norms; `weights` and its file are not
/// needed afterwards. Throws: Error when memory is exhausted or a shape cannot be packed.
PackedWeights pack_weights(const ModelConfig& config, const Weights& weights, ThreadPool& pool);

}  // namespace skein::model
