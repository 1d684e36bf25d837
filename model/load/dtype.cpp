#include "model/load/dtype.h"

#include <fmt/format.h>

#include "model/error.h"

namespace skein::model {
namespace {

// Sizes follow from the block layouts listed in quant.cpp.
constexpr DTypeInfo kTypes[] = {
    {DType::f32, "F32", 1, 4},         {DType::f16, "F16", 1, 2},
    {DType::bf16, "BF16", 1, 2},       {DType::q4_0, "Q4_0", 32, 18},
    {DType::q4_1, "Q4_1", 32, 20},     {DType::q5_0, "Q5_0", 32, 22},
    {DType::q5_1, "Q5_1", 32, 24},     {DType::q8_0, "Q8_0", 32, 34},
    {DType::q4_k, "Q4_K", 256, 144},   {DType::q5_k, "Q5_K", 256, 176},
    {DType::q6_k, "Q6_K", 256, 210},   {DType::iq4_nl, "IQ4_NL", 32, 18},
    {DType::f8_e4m3, "F8_E4M3", 1, 1}, {DType::u8, "U8", 1, 1},
};
constexpr std::uint32_t kFirstForeignId = static_cast<std::uint32_t>(DType::f8_e4m3);

// Ids this build cannot read but can name, so that a refusal says which type it was.
struct NamedId {
    std::uint32_t id;
    std::string_view name;
};
constexpr NamedId kOtherTypes[] = {
    {4, "Q4_2 (removed)"}, {5, "Q4_3 (removed)"}, {9, "Q8_1"},    {10, "Q2_K"},    {11, "Q3_K"},
    {15, "Q8_K"},          {16, "IQ2_XXS"},       {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {21, "IQ3_S"},         {22, "IQ2_S"},         {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},           {27, "I64"},           {28, "F64"},    {29, "IQ1_M"},   {34, "TQ1_0"},
    {35, "TQ2_0"},         {39, "MXFP4"},         {40, "NVFP4"},  {41, "Q1_0"},    {42, "Q2_0"},
};

}  // namespace

const DTypeInfo& dtype_info(DType type) {
    for (const DTypeInfo& info : kTypes) {
        if (info.type == type) return info;
    }
    throw Error(fmt::format("no such tensor type: {}", static_cast<std::uint32_t>(type)));
}

std::optional<DType> dtype_from_gguf(std::uint32_t id) {
    if (id >= kFirstForeignId) return std::nullopt;
    for (const DTypeInfo& info : kTypes) {
        if (static_cast<std::uint32_t>(info.type) == id) return info.type;
    }
    return std::nullopt;
}

std::string gguf_type_name(std::uint32_t id) {
    if (const std::optional<DType> type = dtype_from_gguf(id)) {
        return std::string(dtype_info(*type).name);
    }
    for (const NamedId& other : kOtherTypes) {
        if (other.id == id) return std::string(other.name);
    }
    return fmt::format("unknown type {}", id);
}

}  // namespace skein::model
