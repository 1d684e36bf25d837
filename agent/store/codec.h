#pragma once
// Bytes of the store's blob columns.
//
//   tokens     := varint(id)*                     LEB128, ids are non-negative
//   strings    := (length:varint byte*)*
//   origins    := (origin:u8 length:varint)*      runs over the tokens of a segment
//   logprobs   := f32 little-endian *             one a token
//   compressed := codec:u8 payload                0 = as it is, 1 = zstd frame
//
// Every column of these kinds is stored compressed when that is smaller.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/context/token_log.h"

namespace skein::agent::store {

using Bytes = std::string;
using Runs = std::vector<std::pair<Origin, Tokens>>;

Bytes compress(std::string_view bytes);
/// Throws: Error for an unknown codec, a broken frame or a size above 2 GiB.
Bytes decompress(std::string_view stored);

Bytes encode_tokens(std::span<const Token> tokens);
/// Throws: Error when the bytes are not a whole number of varints below 2^31.
Tokens decode_tokens(std::string_view stored);

Bytes encode_floats(std::span<const float> values);
std::vector<float> decode_floats(std::string_view stored);

/// Texts as raw bytes; users may say what is not valid UTF-8.
Bytes encode_strings(std::span<const std::string> texts);
std::vector<std::string> decode_strings(std::string_view stored);

/// Origins of consecutive tokens as runs; neighbours with the same origin stay separate runs when
/// they were separate segments, because segment borders are part of the record.
Bytes encode_origins(std::span<const std::pair<Origin, std::size_t>> runs);
std::vector<std::pair<Origin, std::size_t>> decode_origins(std::string_view stored);

/// SHA-256 of the bytes, 32 raw bytes.
Bytes sha256(std::string_view bytes);
std::string to_hex(std::string_view bytes);
/// Throws: Error for an odd length or a non-hexadecimal character.
Bytes from_hex(std::string_view hex);

}  // namespace skein::agent::store
