#pragma once
// Element and block types of tensors as stored in files.
// Source: GGUF type ids and block layouts, ggml `docs/gguf.md`; table in README of this folder.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace skein::model {

enum class DType : std::uint32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    iq4_nl = 20,
    bf16 = 30,
    // Types of safetensors files that GGUF does not have; only converted, never evaluated.
    f8_e4m3 = 0x10000,
    u8 = 0x10001
};

struct DTypeInfo {
    DType type;
    std::string_view name;       ///< as in the file format, e.g. "Q4_1"
    std::size_t block_elements;  ///< elements in one block (1 for plain types)
    std::size_t block_bytes;
};

const DTypeInfo& dtype_info(DType type);
/// The type with this GGUF id, or nothing when this build cannot read it.
std::optional<DType> dtype_from_gguf(std::uint32_t id);
/// Name of any GGUF type id known to the format, supported or not; "unknown type N" otherwise.
std::string gguf_type_name(std::uint32_t id);

}  // namespace skein::model
