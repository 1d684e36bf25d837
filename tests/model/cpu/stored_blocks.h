#pragma once
// Tensors of every stored type with random but ordinary contents.

#include <cstring>
#include <vector>

#include "model/load/quant.h"
#include "model/load/tensor.h"
#include "tests/support/numbers.h"

namespace skein::test {

inline constexpr model::DType kAllTypes[] = {
    model::DType::f32,  model::DType::f16,  model::DType::bf16, model::DType::q4_0,
    model::DType::q4_1, model::DType::q5_0, model::DType::q5_1, model::DType::q8_0,
    model::DType::q4_k, model::DType::q5_k, model::DType::q6_k, model::DType::iq4_nl};

struct StoredTensor {
    std::vector<std::byte> bytes;
    model::Tensor tensor;
};

/// Where the f16 scales of a block lie: random bits there could be infinite or NaN.
inline std::vector<std::size_t> scale_offsets(model::DType type) {
    using model::DType;
    if (type == DType::q6_k) return {208};
    if (type == DType::q4_1 || type == DType::q5_1 || type == DType::q4_k || type == DType::q5_k)
        return {0, 2};
    return {0};
}

inline StoredTensor stored_tensor(model::DType type, int rows, int columns, std::uint64_t seed) {
    Numbers numbers(seed);
    StoredTensor stored;
    const model::DTypeInfo& info = model::dtype_info(type);
    const std::size_t blocks =
        static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) / info.block_elements;
    stored.bytes.resize(blocks * info.block_bytes);
    for (std::size_t b = 0; b < blocks; ++b) {
        std::byte* block = stored.bytes.data() + b * info.block_bytes;
        if (info.block_elements == 1) {
            const float value = numbers.unit();
            model::quantize(type, std::span(&value, 1), block);
            continue;
        }
        for (std::size_t i = 0; i < info.block_bytes; ++i)
            block[i] = static_cast<std::byte>(numbers.below(256));
        for (const std::size_t at : scale_offsets(type)) {
            const std::uint16_t scale = model::f32_to_f16(numbers.unit() * 0.05F);
            std::memcpy(block + at, &scale, sizeof scale);
        }
    }
    stored.tensor.name = "test";
    stored.tensor.type = type;
    stored.tensor.dims = {columns, rows, 1, 1};
    stored.tensor.n_dims = 2;
    stored.tensor.data = stored.bytes.data();
    stored.tensor.bytes = stored.bytes.size();
    return stored;
}

}  // namespace skein::test
