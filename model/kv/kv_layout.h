#pragma once
// Where the keys and values of 128 tokens lie inside one block of memory.
//
//   block  = layer[n_layers]          layer = head[n_kv_heads of that layer]
//   head   = keys values            keys   = element[head_dim][128] scale[128]?
//                                   values = element[128][head_dim] scale[128]?
//
// Elements are f32, or int16 codes with an f32 scale for each token. Keys are transposed so that
// scores of 8 tokens are one vector; see CpuKernels::attend.

#include <cstddef>
#include <vector>

#include "model/config.h"
#include "model/cpu/kernels.h"

namespace skein::model {

class KvLayout {
  public:
    KvLayout(const ModelConfig& config, KvType type);

    KvType type() const { return type_; }
    int head_dim() const { return head_dim_; }
    int n_layers() const { return static_cast<int>(first_head_.size()) - 1; }
    int n_kv_heads(int layer) const;
    std::size_t element_bytes() const { return type_ == KvType::f32 ? 4 : 2; }
    std::size_t block_bytes() const;
    /// Offsets inside a block. Requires: valid layer and head.
    std::size_t keys(int layer, int head) const;
    std::size_t values(int layer, int head) const;
    /// Where the scales lie after the start of keys or values. Requires: int16.
    std::size_t scales_offset() const;

    /// Stores the key and value of one token of one layer and head.
    /// Shapes: key, value [head_dim]. Requires: 0 <= token < 128.
    void store(const CpuKernels& kernels, std::byte* block, int layer, int head, int token,
               const float* key, const float* value) const;
    /// Copies the first `tokens` tokens of every layer.
    void copy_head(const std::byte* from, std::byte* to, int tokens) const;

  private:
    std::size_t half_bytes() const;  ///< of one head's keys, or of its values

    KvType type_;
    int head_dim_;
    std::vector<int> first_head_;  ///< heads in the layers before this one; the last is the total
};

}  // namespace skein::model
