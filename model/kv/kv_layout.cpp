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

/// How a transposed matrix lies in memory: strips of tokens, in each a row for every unit of
/// channels. See strip_at, and index_code_at for the planes of int13.
struct Transposed {
    std::size_t unit;   ///< bytes of the channels that stand together
    std::size_t units;  ///< of one token
    std::size_t strip;  ///< tokens

    Transposed(KvType type, int channels)
        : unit(type == KvType::int13 ? 2 : element_bytes(type)),
          units(static_cast<std::size_t>(channels) / (type == KvType::int13 ? 2 : 1)),
          strip(type == KvType::int13 ? kStripTokens : kStripColumns) {}
    std::size_t row_bytes() const { return strip * unit; }
    std::size_t strip_bytes() const { return units * row_bytes(); }
    std::size_t column(std::size_t token) const {
        return token / strip * strip_bytes() + token % strip * unit;
    }
    std::size_t bytes() const { return kBlockTokens * unit * units; }
};

template <typename Element>
void scatter(const std::byte* row, const Transposed& to, std::byte* column) {
    for (std::size_t d = 0; d < to.units; ++d)
        std::memcpy(column + d * to.row_bytes(), row + d * sizeof(Element), sizeof(Element));
}

/// Scales [128] follow a matrix of `bytes` bytes.
void store_scale(KvType type, std::byte* matrix, std::size_t bytes, std::size_t token,
                 float scale) {
    if (has_scales(type)) std::memcpy(matrix + bytes + token * sizeof scale, &scale, sizeof scale);
}

void copy_scales(KvType type, const std::byte* from, std::byte* to, std::size_t bytes,
                 std::size_t tokens) {
    if (has_scales(type)) std::memcpy(to + bytes, from + bytes, tokens * sizeof(float));
}

using Row = std::array<std::byte, kLargestHeadDim * sizeof(float)>;

/// The planes of a row of codes.
void split_codes(const Row& row, int channels, Row& high, Row& low) {
    const int bits = low_bits(channels);
    for (std::size_t d = 0; d < static_cast<std::size_t>(channels); ++d) {
        std::int16_t code = 0;
        std::memcpy(&code, row.data() + d * sizeof code, sizeof code);
        high[d] = static_cast<std::byte>(code >> bits);
        low[d] = static_cast<std::byte>(code & ((1 << bits) - 1));
    }
}

/// Writes one vector as a column of a transposed matrix [channels, 128] with scales after it.
void store_column(const CpuKernels& kernels, KvType type, int channels, std::byte* matrix,
                  int token, const float* x) {
    Row row;
    float scale = 0;
    kernels.encode(type, x, channels, row.data(), scale);
    const Transposed layout(type, channels);
    const auto at = static_cast<std::size_t>(token);
    std::byte* to = matrix + layout.column(at);
    if (type == KvType::int13) {
        Row high;
        Row low;
        split_codes(row, channels, high, low);
        scatter<std::uint16_t>(high.data(), layout, to);
        scatter<std::uint16_t>(low.data(), layout, to + layout.bytes());
    } else if (layout.unit == 1) {
        scatter<std::uint8_t>(row.data(), layout, to);
    } else if (layout.unit == 2) {
        scatter<std::uint16_t>(row.data(), layout, to);
    } else {
        scatter<std::uint32_t>(row.data(), layout, to);
    }
    store_scale(type, matrix, matrix_bytes(type, channels), at, scale);
}

/// The first tokens of a transposed matrix and of its scales.
void copy_columns(KvType type, int channels, const std::byte* from, std::byte* to, int tokens) {
    const Transposed layout(type, channels);
    const auto kept = static_cast<std::size_t>(tokens);
    const std::size_t matrix = matrix_bytes(type, channels);
    for (std::size_t plane = 0; plane < matrix; plane += layout.bytes()) {
        for (std::size_t first = 0; first < kept; first += layout.strip) {
            const std::size_t used = std::min(layout.strip, kept - first) * layout.unit;
            for (std::size_t d = 0; d < layout.units; ++d) {
                const std::size_t row = plane + layout.column(first) + d * layout.row_bytes();
                std::memcpy(to + row, from + row, used);
            }
        }
    }
    copy_scales(type, from, to, matrix, kept);
}

/// The parts of the first tokens' rows in each strip of a matrix [128, channels].
template <typename Body>
void for_strips(KvType type, int channels, const Body& body) {
    for (int channel = 0; channel < channels; channel += kStripColumns) {
        const auto start = static_cast<std::size_t>(strip_at(kBlockTokens, channels, 0, channel));
        const auto width = static_cast<std::size_t>(strip_width(channels, channel));
        body(start * element_bytes(type), width * element_bytes(type));
    }
}

/// Writes one vector as a row of a matrix [128, channels] with scales after it.
void store_row(const CpuKernels& kernels, KvType type, int channels, std::byte* matrix, int token,
               const float* x) {
    Row row;
    float scale = 0;
    kernels.encode(type, x, channels, row.data(), scale);
    const auto at = static_cast<std::size_t>(token);
    const std::byte* from = row.data();
    for_strips(type, channels, [&](std::size_t start, std::size_t width) {
        std::memcpy(matrix + start + at * width, from, width);
        from += width;
    });
    store_scale(type, matrix, matrix_bytes(type, channels), at, scale);
}

/// The first tokens of a matrix [128, channels] and of its scales.
void copy_rows(KvType type, int channels, const std::byte* from, std::byte* to, int tokens) {
    const auto kept = static_cast<std::size_t>(tokens);
    for_strips(type, channels, [&](std::size_t start, std::size_t width) {
        std::memcpy(to + start, from + start, kept * width);
    });
    copy_scales(type, from, to, matrix_bytes(type, channels), kept);
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
    store_row(kernels, type_, head_dim_, block + values(layer, head), token, value);
}

void KvLayout::store_index(const CpuKernels& kernels, std::byte* block, int layer, int token,
                           const float* key) const {
    store_column(kernels, index_type_, index_dim_, block + index_keys(layer), token, key);
}

void KvLayout::copy_head(const std::byte* from, std::byte* to, int tokens) const {
    expect(tokens >= 0 && tokens <= kBlockTokens, "a block holds 128 tokens");
    for (int layer = 0; layer < n_layers(); ++layer) {
        for (int head = 0; head < n_kv_heads(layer); ++head) {
            const std::size_t keys_at = keys(layer, head);
            copy_columns(type_, head_dim_, from + keys_at, to + keys_at, tokens);
            const std::size_t values_at = values(layer, head);
            copy_rows(type_, head_dim_, from + values_at, to + values_at, tokens);
        }
        if (!has_index(layer)) continue;
        const std::size_t index_at = index_keys(layer);
        copy_columns(index_type_, index_dim_, from + index_at, to + index_at, tokens);
    }
}

}  // namespace skein::model
