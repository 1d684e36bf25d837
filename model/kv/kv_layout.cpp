#include "model/kv/kv_layout.h"

#include <array>
#include <cstring>

#include "model/expect.h"

namespace skein::model {

KvLayout::KvLayout(const ModelConfig& config, KvType type)
    : type_(type), head_dim_(config.head_dim), first_head_{0} {
    for (const LayerConfig& layer : config.layers)
        first_head_.push_back(first_head_.back() + layer.n_kv_heads);
}

int KvLayout::n_kv_heads(int layer) const {
    const auto index = static_cast<std::size_t>(layer);
    return first_head_[index + 1] - first_head_[index];
}

std::size_t KvLayout::scales_offset() const {
    return static_cast<std::size_t>(head_dim_) * kBlockTokens * element_bytes();
}

std::size_t KvLayout::half_bytes() const {
    return scales_offset() + (type_ == KvType::int16 ? kBlockTokens * sizeof(float) : 0);
}

std::size_t KvLayout::block_bytes() const {
    return static_cast<std::size_t>(first_head_.back()) * 2 * half_bytes();
}

std::size_t KvLayout::keys(int layer, int head) const {
    const int index = first_head_[static_cast<std::size_t>(layer)] + head;
    return static_cast<std::size_t>(index) * 2 * half_bytes();
}

std::size_t KvLayout::values(int layer, int head) const {
    return keys(layer, head) + half_bytes();
}

void KvLayout::store(const CpuKernels& kernels, std::byte* block, int layer, int head, int token,
                     const float* key, const float* value) const {
    const auto column = static_cast<std::size_t>(token);
    const auto channels = static_cast<std::size_t>(head_dim_);
    if (type_ == KvType::f32) {
        auto* keys_at = reinterpret_cast<float*>(block + keys(layer, head));
        auto* values_at = reinterpret_cast<float*>(block + values(layer, head));
        for (std::size_t d = 0; d < channels; ++d) keys_at[d * kBlockTokens + column] = key[d];
        std::memcpy(values_at + column * channels, value, channels * sizeof(float));
        return;
    }
    std::array<std::int16_t, kLargestHeadDim> codes;
    auto* keys_at = reinterpret_cast<std::int16_t*>(block + keys(layer, head));
    auto* values_at = reinterpret_cast<std::int16_t*>(block + values(layer, head));
    auto* key_scales = reinterpret_cast<float*>(block + keys(layer, head) + scales_offset());
    auto* value_scales = reinterpret_cast<float*>(block + values(layer, head) + scales_offset());
    kernels.quantize_head(key, head_dim_, codes.data(), key_scales[column]);
    for (std::size_t d = 0; d < channels; ++d) keys_at[d * kBlockTokens + column] = codes[d];
    kernels.quantize_head(value, head_dim_, values_at + column * channels, value_scales[column]);
}

void KvLayout::copy_head(const std::byte* from, std::byte* to, int tokens) const {
    expect(tokens >= 0 && tokens <= kBlockTokens, "a block holds 128 tokens");
    const std::size_t row = kBlockTokens * element_bytes();
    const std::size_t used = static_cast<std::size_t>(tokens) * element_bytes();
    const auto channels = static_cast<std::size_t>(head_dim_);
    for (std::size_t at = 0; at < block_bytes(); at += 2 * half_bytes()) {
        for (std::size_t d = 0; d < channels; ++d)
            std::memcpy(to + at + d * row, from + at + d * row, used);
        const std::size_t values_at = at + half_bytes();
        std::memcpy(to + values_at, from + values_at, used * channels);
        if (type_ == KvType::f32) continue;
        const std::size_t scale_bytes = static_cast<std::size_t>(tokens) * sizeof(float);
        std::memcpy(to + at + scales_offset(), from + at + scales_offset(), scale_bytes);
        std::memcpy(to + values_at + scales_offset(), from + values_at + scales_offset(),
                    scale_bytes);
    }
}

}  // namespace skein::model
