#pragma once
// What every loader (GGUF, safetensors) gives the engine: metadata, tensors, config, vocabulary.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/load/tensor.h"
#include "model/text/vocabulary.h"

namespace skein::model {

struct ConfigOptions {
    /// Every layer gets dense attention, whatever the model was trained with. This is the only way
    /// to load a sparse model whose file lacks the index tensors; ModelConfig says so.
    bool dense_approximation = false;
};

/// An opened, fully checked model file (or set of shards). Immutable; keeps its mappings alive.
class ModelFile {
  public:
    virtual ~ModelFile() = default;
    virtual const std::filesystem::path& path() const = 0;
    virtual std::string_view format() const = 0;  ///< "gguf" or "safetensors"
    virtual const std::vector<Tensor>& tensors() const = 0;
    /// The tensor of this name, or nullptr.
    virtual const Tensor* find(std::string_view name) const = 0;
    /// Metadata rendered as text, in file order, for `skein model inspect`.
    virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
    /// Throws: Error naming an unknown architecture, a missing key or a contradiction.
    virtual ModelConfig config(const ConfigOptions& options = {}) const = 0;
    /// Throws: Error when the file holds no tokenizer or a broken one.
    virtual Vocabulary vocabulary() const = 0;
    /// The chat template's text, empty when the file has none. Never executed.
    virtual std::string chat_template() const = 0;
    /// SHA-256 is the store's business; this is size plus metadata, cheap and stable.
    virtual std::uint64_t total_bytes() const = 0;
};

/// Opens a GGUF file (also a split one) or a safetensors folder.
/// Throws: Error; nothing is read past the end of a file, nothing is allocated from an unchecked
/// length.
std::unique_ptr<ModelFile> open_model_file(const std::filesystem::path& path);

}  // namespace skein::model
