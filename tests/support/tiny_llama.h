#pragma once
// A complete tiny model as a GGUF writer: config, byte-level tokenizer and seeded random weights.
// Tests change single fields of the shape, or add keys and tensors before writing.

#include <cstdint>
#include <string>

#include "model/load/dtype.h"
#include "support/gguf_writer.h"

namespace skein::test {

struct TinyShape {
    std::string architecture = "llama";
    std::uint32_t dim = 64;
    std::uint32_t n_layers = 2;
    std::uint32_t n_heads = 4;
    std::uint32_t n_kv_heads = 2;
    std::uint32_t hidden_dim = 96;
    std::uint32_t max_context = 4096;
    bool tied_head = true;
    model::DType matrix_type = model::DType::f32;
    std::uint64_t seed = 1;
};

/// Tokens of the tiny tokenizer: 256 bytes (id = byte), 3 merges, then the control tokens
/// <|im_start|>, <|im_end|> and <|endoftext|>.
inline constexpr std::uint32_t kTinyVocabulary = 262;
inline constexpr std::uint32_t kTinyStart = 259;
inline constexpr std::uint32_t kTinyEnd = 260;
inline constexpr std::uint32_t kTinyEndOfText = 261;

/// Metadata without tokenizer; tensors come from add_tiny_tensors.
void add_tiny_config(GgufWriter& writer, const TinyShape& shape);
void add_tiny_tokenizer(GgufWriter& writer);
void add_tiny_tensors(GgufWriter& writer, const TinyShape& shape);
/// All three.
GgufWriter tiny_llama(const TinyShape& shape = {});

}  // namespace skein::test
