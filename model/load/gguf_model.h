#pragma once
// A GGUF file, or the ordered set of its shards, as a ModelFile; and the parts that read config and
// vocabulary from parsed metadata.
//
// Shards are named `<prefix>-00001-of-0000N.gguf`, counted from 1, and hold `split.no`, counted
// from 0; the first one has all metadata, tensor offsets are per file. Siblings are looked for only
// in the folder of the opened file.

#include <filesystem>
#include <memory>

#include "model/load/gguf.h"
#include "model/load/model_file.h"
#include "model/load/tensor_names.h"

namespace skein::model {

/// Throws: Error as ModelFile::config.
ModelConfig gguf_config(const GgufIndex& index, const TensorLookup& find,
                        const ConfigOptions& options = {});
/// Throws: Error as ModelFile::vocabulary.
Vocabulary gguf_vocabulary(const GgufIndex& index);

/// Opens the file and, when it is one shard, all the others.
/// Throws: Error naming the missing or misnumbered shard.
std::unique_ptr<ModelFile> open_gguf(const std::filesystem::path& path);

}  // namespace skein::model
