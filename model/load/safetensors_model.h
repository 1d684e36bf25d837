#pragma once
// A folder as published for transformers: config.json, model.safetensors or an index of shards, and
// optionally tokenizer.json, tokenizer_config.json and chat_template.jinja.
//
// Refused: shard names that leave the folder, an index that disagrees with the shards, tensor types
// other than F32, F16 and BF16, config fields that change the forward pass and are not implemented.

#include <filesystem>
#include <memory>
#include <string_view>

#include <boost/json/value.hpp>

#include "model/load/model_file.h"

namespace skein::model {

/// Throws: Error as open_model_file.
std::unique_ptr<ModelFile> open_safetensors(const std::filesystem::path& folder);

/// The config of a config.json. `has_query_bias`: layer 0 has a q bias tensor; `n_embeddings`
/// is the number of rows of the embedding matrix, 0 when absent.
/// Throws: Error as ModelFile::config.
ModelConfig safetensors_config(const boost::json::value& config, std::string_view where,
                               bool has_query_bias, std::uint64_t n_embeddings,
                               const ConfigOptions& options = {});

/// The tables of a tokenizer.json of byte-level BPE, padded with unused tokens to `vocab_size`.
/// `settings` is tokenizer_config.json, an empty object when the folder has none.
/// Throws: Error naming what is missing or not supported.
Vocabulary tokenizer_json_vocabulary(const boost::json::value& tokenizer,
                                     const boost::json::value& settings, std::string_view where,
                                     std::uint64_t vocab_size);

}  // namespace skein::model
