#pragma once
// The weights of a transformer as the kernels read them, in one piece of memory.

#include <cstddef>
#include <vector>

#include "model/config.h"
#include "model/cpu/huge_buffer.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/thread_pool.h"
#include "model/load/weights.h"

namespace skein::model {

/// Vectors that the architecture lacks are empty. Names and shapes as in LayerWeights.
struct PackedLayer {
    std::vector<float> attn_norm, ffn_norm;
    std::vector<float> q_norm, k_norm;
    std::vector<float> bq, bk, bv;
    PackedMatrix wq, wk, wv, wo;
    PackedMatrix w_gate, w_up, w_down;
};

struct PackedWeights {
    PackedMatrix token_embedding;
    PackedMatrix output;  ///< shares the embedding's memory when the head is tied
    std::vector<float> output_norm;
    std::vector<float> rope_divisors;  ///< [rope_dim / 2], empty when there are none
    std::vector<PackedLayer> layers;
    std::size_t bytes_per_token = 0;  ///< matrix bytes read to decode one token
    HugeBuffer memory;
};

/// Copies and re-orders; `weights` and its file are not needed afterwards.
/// Throws: Error when memory is exhausted or a shape cannot be packed.
PackedWeights pack_weights(const Weights& weights, ThreadPool& pool);

}  // namespace skein::model
