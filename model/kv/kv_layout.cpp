#include "model/kv/kv_layout.h"

#include <array>
#include <cstring>

#include "model/expect.h"

namespace skein::model {
namespace {

constexpr std::size_t kScaleBytes = kBlockTokens * sizeof(float);

std::size_t matrix_bytes(KvType type, int channels) {
    return static_cast<std::size_t>(channels) * kBlockTokens * element_bytes(type);
}

std::size_t stored_bytes(KvType type, int channels) {
    return matrix_bytes(type, channels) + (has_scales(type) ? kScaleBytes : 0);
}

/// Elements that stand together in a transposed matrix: int13 keeps pairs of channels.
std::size_t channels_together(KvType type) {
    return type == KvType::int13 ? 2 : 1;
}

template <typename Element>
void scatter(const std::byte* row, std::size_t count, std::byte* column) {
    for (std::size_t d = 0; d < count; ++d)
        std::memcpy(column + d * kBlockTokens * sizeof(Element), row + d * sizeof(Element),
                    sizeof(Element));
}

/// Writes one vector as a column of a transposed matrix [channels, 128] with scales after it.
void store_column(const CpuKernels& kernels, KvType type, int channels, std::byte* matrix,
                  int token, const float* x) {
    std::array<std::byte, kLargestHeadDim * sizeof(float)> row;
    float scale = 0;
    kernels.encode(type, x, channels, row.data(), scale);
    const auto column = static_cast<std::size_t>(token);
    const std::size_t unit = element_bytes(type) * channels_together(type);
    const std::size_t units = static_cast<std::size_t>(channels) / channels_together(type);
    std::byte* to = matrix + column * unit;
    switch (unit) {
        case 1:
            scatter<std::uint8_t>(row.data(), units, to);
            break;
        case 2:
            scatter<std::uint16_t>(row.data(), units, to);
            break;
        default:
            scatter<std::uint32_t>(row.data(), units, to);
    }
    if (has_scales(type))
        std::memcpy(matrix + matrix_bytes(type, channels) + column * sizeof scale, &scale,
                    sizeof scale);
}

/// The first tokens of a transposed matrix and of its scales.
void copy_columns(KvType type, int channels, const std::byte* from, std::byte* to, int tokens) {
    const std::size_t unit = element_bytes(type) * channels_together(type);
    const std::size_t units = static_cast<std::size_t>(channels) / channels_together(type);
    const std::size_t row = kBlockTokens * unit;
    const std::size_t used = static_cast<std::size_t>(tokens) * unit;
    for (std::size_t d = 0; d < units; ++d) std::memcpy(to + d * row, from + d * row, used);
    if (!has_scales(type)) return;
    const std::size_t scales = matrix_bytes(type, channels);
    std::memcpy(to + scales, from + scales, static_cast<std::size_t>(tokens) * sizeof(float));
}

}  // namespace

KvLayout::KvLayout(const ModelConfig& config, KvType type, KvType index_type)
    : type_(type),
      index_type_(index_type),
      head_dim_(config.head_dim),
      index_dim_(config.msa.index_dim) {
    for (const LayerConfig& layer : config.layers) {
        const bool index = layer.attention == AttentionKind::msa;
        const bool bounds = layer.attention == AttentionKind::retrofit;
        layers_.push_back({block_bytes_, layer.n_kv_heads, index, bounds});
        block_bytes_ += static_cast<std::size_t>(layer.n_kv_heads) * head_bytes();
        if (index) block_bytes_ += index_bytes();
        if (bounds) block_bytes_ += static_cast<std::size_t>(layer.n_kv_heads) * bounds_bytes();
    }
}

std::size_t KvLayout::scales_offset() const {
    return matrix_bytes(type_, head_dim_);
}

std::size_t KvLayout::index_scales_offset() const {
    return matrix_bytes(index_type_, index_dim_);
}

std::size_t KvLayout::index_bytes() const {
    return stored_bytes(index_type_, index_dim_);
}

std::size_t KvLayout::bounds_bytes() const {
    return 2 * static_cast<std::size_t>(head_dim_) * sizeof(float);
}

std::size_t KvLayout::key_value_bytes_per_token() const {
    std::size_t heads = 0;
    for (const Layer& layer : layers_) heads += static_cast<std::size_t>(layer.n_kv_heads);
    return heads * head_bytes() / kBlockTokens;
}

std::size_t KvLayout::index_bytes_per_token() const {
    std::size_t layers = 0;
    for (const Layer& layer : layers_) layers += layer.index ? 1 : 0;
    return layers * index_bytes() / kBlockTokens;
}

std::size_t KvLayout::half_bytes() const {
    return stored_bytes(type_, head_dim_);
}

std::size_t KvLayout::keys(int layer, int head) const {
    return at(layer).offset + static_cast<std::size_t>(head) * 2 * half_bytes();
}

std::size_t KvLayout::values(int layer, int head) const {
    return keys(layer, head) + half_bytes();
}

std::size_t KvLayout::index_keys(int layer) const {
    return keys(layer, n_kv_heads(layer));
}

std::size_t KvLayout::bounds(int layer, int head) const {
    return keys(layer, n_kv_heads(layer)) + static_cast<std::size_t>(head) * bounds_bytes();
}

void KvLayout::store(const CpuKernels& kernels, std::byte* block, int layer, int head, int token,
                     const float* key, const float* value) const {
    store_column(kernels, type_, head_dim_, block + keys(layer, head), token, key);
    const auto row = static_cast<std::size_t>(token);
    std::byte* values_at = block + values(layer, head);
    float scale = 0;
    kernels.encode(type_, value, head_dim_,
                   values_at + row * static_cast<std::size_t>(head_dim_) * element_bytes(type_),
                   scale);
    if (has_scales(type_))
        std::memcpy(values_at + scales_offset() + row * sizeof scale, &scale, sizeof scale);
}

void KvLayout::store_index(const CpuKernels& kernels, std::byte* block, int layer, int token,
                           const float* key) const {
    store_column(kernels, index_type_, index_dim_, block + index_keys(layer), token, key);
}

void KvLayout::copy_head(const std::byte* from, std::byte* to, int tokens) const {
    expect(tokens >= 0 && tokens <= kBlockTokens, "a block holds 128 tokens");
    const auto kept = static_cast<std::size_t>(tokens);
    const std::size_t value_bytes =
        kept * static_cast<std::size_t>(head_dim_) * element_bytes(type_);
    for (int layer = 0; layer < n_layers(); ++layer) {
        for (int head = 0; head < n_kv_heads(layer); ++head) {
            const std::size_t keys_at = keys(layer, head);
            copy_columns(type_, head_dim_, from + keys_at, to + keys_at, tokens);
            const std::size_t values_at = values(layer, head);
            std::memcpy(to + values_at, from + values_at, value_bytes);
            if (has_scales(type_))
                std::memcpy(to + values_at + scales_offset(), from + values_at + scales_offset(),
                            kept * sizeof(float));
        }
        if (!has_index(layer)) continue;
        const std::size_t index_at = index_keys(layer);
        copy_columns(index_type_, index_dim_, from + index_at, to + index_at, tokens);
    }
}

}  // namespace skein::model
