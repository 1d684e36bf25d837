#pragma once
// GGUF versions 2 and 3, little-endian. Parses untrusted bytes: every length is compared with the
// bytes that remain before anything is allocated or skipped.
//
//   file      = "GGUF" u32:version u64:n_tensors u64:n_pairs pair* tensor* padding data
//   pair      = string:key u32:value_type value
//   tensor    = string:name u32:n_dims u64:dim* u32:tensor_type u64:offset   (dim 0 is fastest)
//   string    = u64:length byte*
//   array     = u32:value_type u64:count value*
// Offsets count from the data start, which is the end of the table padded to `general.alignment`.
//
// Refused: version 1 and big-endian files, nested arrays, unknown value and tensor types, repeated
// keys or names, 0 or more than 4 dims, empty dims, rows that are not whole blocks, sizes that
// overflow, unaligned or overlapping tensors, tensors that end past the file.
// Source: GGUF specification, ggml `docs/gguf.md`.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "model/load/tensor.h"

namespace skein::model {

enum class GgufType : std::uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12
};

std::string_view gguf_value_type_name(GgufType type);

/// Limits that no real file comes near; beyond them a file is refused, whatever its size.
inline constexpr std::uint64_t kGgufMaxPairs = 1U << 16;
inline constexpr std::uint64_t kGgufMaxTensors = 1U << 18;
inline constexpr std::uint64_t kGgufMaxKeyBytes = 1U << 16;
inline constexpr std::uint64_t kGgufMaxStringBytes = 1U << 24;
inline constexpr std::uint64_t kGgufMaxTensorNameBytes = 64;
inline constexpr std::uint64_t kGgufDefaultAlignment = 32;
inline constexpr std::uint64_t kGgufMinAlignment = 8;
inline constexpr std::uint64_t kGgufMaxAlignment = 1U << 20;

/// A checked array left where it lies in the file.
struct GgufArray {
    GgufType element = GgufType::u8;
    std::uint64_t count = 0;
    std::span<const std::byte> bytes;  ///< exactly the elements
};

/// Unsigned, signed and floating values widened; strings and arrays point into the file.
using GgufValue =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

struct GgufPair {
    std::string_view key;
    GgufType type = GgufType::u8;
    GgufValue value;
};

/// Everything a GGUF file states, checked. Lifetime: views and tensor data point into the bytes.
struct GgufIndex {
    std::string where;  ///< how messages name the file
    std::uint32_t version = 0;
    std::uint64_t alignment = kGgufDefaultAlignment;
    std::uint64_t data_offset = 0;
    std::vector<GgufPair> pairs;  ///< file order
    std::vector<Tensor> tensors;  ///< table order
    std::unordered_map<std::string_view, std::size_t> pair_by_key;

    const GgufPair* find(std::string_view key) const;
    /// Typed look-ups: nothing when the key is absent.
    /// Throws: Error naming the key when the value has another type or is negative.
    std::optional<std::uint64_t> unsigned_value(std::string_view key) const;
    std::optional<double> float_value(std::string_view key) const;
    std::optional<bool> bool_value(std::string_view key) const;
    std::optional<std::string_view> string_value(std::string_view key) const;
    /// An integer or an array of integers (per-layer values); empty when the key is absent.
    std::vector<std::uint64_t> unsigned_values(std::string_view key) const;
    /// An array of bools, or of integers that are 0 or 1; empty when the key is absent.
    std::vector<bool> bool_values(std::string_view key) const;
    std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
};

/// Throws: Error. `where` names the file in messages; `bytes` must outlive the result.
GgufIndex parse_gguf(std::span<const std::byte> bytes, std::string where);

/// Shortens a value to one line of text: long strings are cut, arrays show count and first items.
std::string describe_value(const GgufPair& pair);

}  // namespace skein::model
