#pragma once
// The safetensors format. Parses untrusted bytes.
//
//   file    = u64:header_bytes header data
//   header  = JSON object, may be padded with spaces:
//             { "__metadata__": {name: text}, NAME: {dtype, shape, data_offsets: [begin, end]} }
// Offsets count from the end of the header. Sorted by offset the tensors must cover the data
// exactly: no hole, no overlap, nothing after the last one.
// Source: safetensors README, huggingface/safetensors.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein::model {

/// The limit of the format's reference reader.
inline constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;

struct SafetensorsEntry {
    std::string name;
    std::string dtype;                 ///< as stored, e.g. "BF16"
    std::vector<std::uint64_t> shape;  ///< slowest extent first, as stored
    std::span<const std::byte> data;   ///< may be unaligned for its type
};

/// Lifetime: `data` of the entries points into the parsed bytes.
struct SafetensorsIndex {
    std::vector<SafetensorsEntry> entries;  ///< by offset
    std::vector<std::pair<std::string, std::string>> metadata;
};

/// Throws: Error naming the tensor, the wanted and the given bytes; a type whose size is not known
/// here is refused as unsupported, never as a broken file.
SafetensorsIndex parse_safetensors(std::span<const std::byte> bytes, std::string_view where);

}  // namespace skein::model
