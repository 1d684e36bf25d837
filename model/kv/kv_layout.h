#pragma once
// Where the keys and values of 128 tokens lie inside one block of memory.
//
//   block  = layer[n_layers]        layer = head[n_kv_heads of that layer] index? bounds?
//   head   = keys values            keys   = element[head_dim, 128] scale[128]?
//                                   values = element[128, head_dim] scale[128]?
//   index  = element[index_dim, 128] scale[128]?     of layers with an index branch
//   bounds = f32[n_kv_heads][2][head_dim]            of retrofitted layers: see retrofit.h
//
// Types and scales: see KvType. Matrices lie in strips (strip_at, index_code_at). Keys are
// transposed so that scores of 8 tokens are one vector; see CpuKernels::attend. Index keys have a
// type of their own: a wrong score there swaps a whole block.

#include <cstddef>
#include <vector>

#include "model/config.h"
#include "model/cpu/kernels.h"

namespace skein::model {

class KvLayout {
  public:
    KvLayout(const ModelConfig& config, KvType type, KvType index_type = KvType::int13);

    KvType type() const { return type_; }
    KvType index_type() const { return index_type_; }
    int head_dim() const { return head_dim_; }
    int index_dim() const { return index_dim_; }
    int n_layers() const { return static_cast<int>(layers_.size()); }
    int n_kv_heads(int layer) const { return at(layer).n_kv_heads; }
    bool has_index(int layer) const { return at(layer).index; }
    bool has_bounds(int layer) const { return at(layer).bounds; }
    std::size_t block_bytes() const { return block_bytes_; }
    /// Of one block: keys and values of one head; index keys of one layer; bounds of one head.
    std::size_t head_bytes() const { return 2 * half_bytes(); }
    std::size_t index_bytes() const;
    std::size_t bounds_bytes() const;
    /// Bytes of one token in all layers: keys and values, and index keys.
    std::size_t key_value_bytes_per_token() const;
    std::size_t index_bytes_per_token() const;
    /// Offsets inside a block. Requires: valid layer and head.
    std::size_t keys(int layer, int head) const;
    std::size_t values(int layer, int head) const;
    std::size_t index_keys(int layer) const;        ///< requires has_index(layer)
    std::size_t bounds(int layer, int head) const;  ///< requires has_bounds(layer)
    /// Where the scales lie after the start of keys or values, and of index keys. Requires: a type
    /// that has scales.
    std::size_t scales_offset() const;
    std::size_t index_scales_offset() const;

    /// Stores the key and value of one token of one layer and head.
    /// Shapes: key, value [head_dim]. Requires: 0 <= token < 128.
    void store(const CpuKernels& kernels, std::byte* block, int layer, int head, int token,
               const float* key, const float* value) const;
    /// Stores the index key of one token of one layer. Shapes: key [index_dim].
    void store_index(const CpuKernels& kernels, std::byte* block, int layer, int token,
                     const float* key) const;
    /// Copies the first `tokens` tokens of every layer.
    void copy_head(const std::byte* from, std::byte* to, int tokens) const;

  private:
    struct Layer {
        std::size_t offset = 0;
        int n_kv_heads = 0;
        bool index = false;
        bool bounds = false;
    };
    const Layer& at(int layer) const { return layers_[static_cast<std::size_t>(layer)]; }
    std::size_t half_bytes() const;  ///< of one head's keys, or of its values

    KvType type_;
    KvType index_type_;
    int head_dim_;
    int index_dim_;
    std::vector<Layer> layers_;
    std::size_t block_bytes_ = 0;
};

}  // namespace skein::model
