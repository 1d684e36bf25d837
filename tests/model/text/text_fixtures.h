#pragma once
// Reading the tokenizer fixtures: JSON files, hex, and a tokenizer.json as a Vocabulary.

#include <doctest/doctest.h>
#include <boost/json.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>

#include "model/text/unicode.h"
#include "model/text/vocabulary.h"

namespace skein::test {

inline boost::json::value load_json(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE_MESSAGE(file.good(), "fixture is missing: " << path);
    std::ostringstream text;
    text << file.rdbuf();
    return boost::json::parse(text.str());
}

inline std::string from_hex(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    }
    return bytes;
}

inline std::string as_string(const boost::json::value& value) {
    return std::string(value.as_string());
}

inline model::Tokens as_tokens(const boost::json::value& value) {
    return boost::json::value_to<model::Tokens>(value);
}

/// Undoes the GPT-2 byte alphabet: printable Latin-1 stands for itself, the rest for U+0100 on.
inline std::string undo_byte_alphabet(std::string_view text) {
    static const auto byte_of = [] {
        std::unordered_map<char32_t, char> table;
        char32_t extra = 0x100;
        for (int b = 0; b < 256; ++b) {
            const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
            table[plain ? static_cast<char32_t>(b) : extra++] = static_cast<char>(b);
        }
        return table;
    }();
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
        const model::Utf8Step step = model::utf8_step(text, at);
        bytes.push_back(byte_of.at(step.code_point));
        at += step.length;
    }
    return bytes;
}

/// The vocabulary of a byte-level BPE tokenizer.json, padded to `n_rows` with unused rows.
inline model::Vocabulary vocabulary_of(const boost::json::value& file, std::string pre_tokenizer,
                                       std::size_t n_rows) {
    model::Vocabulary v;
    v.pre_tokenizer = std::move(pre_tokenizer);
    v.texts.resize(n_rows);
    v.types.assign(n_rows, model::TokenType::unused);
    for (const auto& [text, id] : file.at("model").at("vocab").as_object()) {
        const auto i = id.to_number<std::size_t>();
        v.texts.at(i) = undo_byte_alphabet(text);
        v.types.at(i) = model::TokenType::normal;
    }
    for (const auto& added : file.at("added_tokens").as_array()) {
        const auto i = added.at("id").to_number<std::size_t>();
        v.texts.at(i) = as_string(added.at("content"));
        v.types.at(i) = added.at("special").as_bool() ? model::TokenType::control
                                                      : model::TokenType::user_defined;
    }
    for (const auto& merge : file.at("model").at("merges").as_array()) {
        v.merges.emplace_back(undo_byte_alphabet(as_string(merge.at(0))),
                              undo_byte_alphabet(as_string(merge.at(1))));
    }
    return v;
}

}  // namespace skein::test
