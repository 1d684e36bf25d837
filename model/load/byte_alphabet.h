#pragma once
// The byte alphabet of GPT-2 style tokenizers: every byte is written as one printable character,
// bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF as themselves, the other 68 as U+0100 and up, in order.
// Source: Radford et al. 2019, the GPT-2 `bytes_to_unicode` table.

#include <optional>
#include <string>
#include <string_view>

namespace skein::model {

/// The raw bytes that `text` stands for, or nothing when it holds a character outside the alphabet.
std::optional<std::string> undo_byte_alphabet(std::string_view text);

/// The inverse: any bytes as UTF-8 text in the alphabet.
std::string to_byte_alphabet(std::string_view bytes);

}  // namespace skein::model
