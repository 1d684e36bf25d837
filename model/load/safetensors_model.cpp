#include "model/load/safetensors_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>

#include "model/error.h"
#include "model/load/json_text.h"
#include "model/load/mapped_file.h"
#include "model/load/printable.h"
#include "model/load/safetensors.h"
#include "model/load/tensor_names.h"

namespace skein::model {
namespace {

namespace json = boost::json;

struct ReadableType {
    std::string_view name;
    DType type;
};
constexpr ReadableType kReadableTypes[] = {{"F32", DType::f32},
                                           {"F16", DType::f16},
                                           {"BF16", DType::bf16},
                                           {"F8_E4M3", DType::f8_e4m3},
                                           {"U8", DType::u8}};

json::value read_json(const std::filesystem::path& path) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

Tensor to_tensor(const SafetensorsEntry& entry, const std::string& where) {
    const auto* known = std::find_if(std::begin(kReadableTypes), std::end(kReadableTypes),
                                     [&](const ReadableType& t) { return t.name == entry.dtype; });
    if (known == std::end(kReadableTypes)) {
        throw Error(fmt::format("{}: tensor '{}' has type {}, which this build cannot read", where,
                                printable(entry.name), entry.dtype));
    }
    Tensor tensor;
    tensor.name = entry.name;
    tensor.type = known->type;
    if (entry.data.empty()) {
        throw Error(fmt::format("{}: tensor '{}' has shape [{}], expected extents from 1", where,
                                printable(entry.name), fmt::join(entry.shape, ", ")));
    }
    // Only convolution kernels of vision towers have more than four extents. Nobody here reads
    // them; the slowest extents are folded into one so that the element count stays right.
    const std::size_t n_dims = std::min(tensor.dims.size(), entry.shape.size());
    tensor.n_dims = static_cast<int>(std::max<std::size_t>(1, n_dims));
    for (std::size_t i = 0; i < entry.shape.size(); ++i) {
        const auto extent = static_cast<std::int64_t>(entry.shape[entry.shape.size() - 1 - i]);
        tensor.dims[std::min(i, tensor.dims.size() - 1)] *= extent;
    }
    tensor.data = entry.data.data();
    tensor.bytes = entry.data.size();
    return tensor;
}

class SafetensorsModel final : public ModelFile {
  public:
    explicit SafetensorsModel(const std::filesystem::path& folder)
        : path_(folder), config_(read_json(folder / "config.json")) {
        const std::map<std::string, std::string> placement = read_index();
        std::set<std::string> names{"model.safetensors"};
        if (!placement.empty()) names.clear();
        for (const auto& [tensor, shard] : placement) names.insert(shard);
        for (const std::string& name : names) add_shard(name);
        for (const Tensor& tensor : tensors_) by_name_.emplace(tensor.name, &tensor);
        for (const auto& [tensor, shard] : placement) {
            const auto found = shard_of_.find(tensor);
            if (found != shard_of_.end() && found->second == shard) continue;
            throw Error(fmt::format("{}: the index says tensor '{}' is in '{}', it is not",
                                    path_.string(), printable(tensor), shard));
        }
    }

    const std::filesystem::path& path() const override { return path_; }
    std::string_view format() const override { return "safetensors"; }
    const std::vector<Tensor>& tensors() const override { return tensors_; }
    const Tensor* find(std::string_view name) const override {
        const auto it = by_name_.find(name);
        return it == by_name_.end() ? nullptr : it->second;
    }
    std::vector<std::pair<std::string, std::string>> describe() const override {
        std::vector<std::pair<std::string, std::string>> lines;
        for (const auto& [key, value] : JsonObject(config_, where_config()).members()) {
            lines.emplace_back(printable({key.data(), key.size()}),
                               printable(json::serialize(value)));
        }
        for (const auto& [key, value] : metadata_) {
            lines.emplace_back(printable(key), printable(value));
        }
        return lines;
    }
    ModelConfig config(const ConfigOptions& options) const override {
        const NamingScheme names =
            safetensors_names([this](std::string_view name) { return find(name); });
        const Tensor* embedding = find(names.embedding);
        const bool has_query_bias = find(names.layer_tensor(0, "self_attn.q_proj.bias")) != nullptr;
        const auto rows =
            embedding == nullptr ? 0 : static_cast<std::uint64_t>(embedding->n_rows());
        return safetensors_config(config_, where_config(), has_query_bias, rows, options);
    }
    Vocabulary vocabulary() const override {
        const std::filesystem::path file = path_ / "tokenizer.json";
        if (!std::filesystem::exists(file)) {
            throw Error(fmt::format("{}: the folder holds no tokenizer.json", path_.string()));
        }
        return tokenizer_json_vocabulary(read_json(file), tokenizer_settings(), file.string(),
                                         n_tokens());
    }
    std::string chat_template() const override {
        const std::filesystem::path file = path_ / "chat_template.jinja";
        if (std::filesystem::exists(file)) {
            const MappedFile text(file);
            return {reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()};
        }
        const json::value settings = tokenizer_settings();
        const json::value* value = JsonObject(settings, path_.string()).find("chat_template");
        return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
    }
    std::uint64_t total_bytes() const override { return total_bytes_; }

  private:
    std::string where_config() const { return (path_ / "config.json").string(); }

    /// The tokenizer does not depend on how attention runs, so a sparse model without its index
    /// branch still has one.
    std::uint64_t n_tokens() const {
        return static_cast<std::uint64_t>(config({.dense_approximation = true}).vocab_size);
    }

    json::value tokenizer_settings() const {
        const std::filesystem::path file = path_ / "tokenizer_config.json";
        return std::filesystem::exists(file) ? read_json(file) : json::value(json::object());
    }

    /// Tensor name to shard name; empty when the folder has a single file.
    std::map<std::string, std::string> read_index() const {
        const std::filesystem::path file = path_ / "model.safetensors.index.json";
        std::map<std::string, std::string> placement;
        if (!std::filesystem::exists(file)) return placement;
        const json::value root = read_json(file);
        const json::value* weights = JsonObject(root, file.string()).find("weight_map");
        if (weights == nullptr || !weights->is_object() || weights->get_object().empty()) {
            throw Error(fmt::format("{}: 'weight_map' is not a filled object", file.string()));
        }
        for (const auto& [tensor, shard] : weights->get_object()) {
            const std::string name = shard.is_string() ? std::string(shard.get_string()) : "";
            // Only plain names: an index must not reach outside its folder.
            if (name.empty() || name != std::filesystem::path(name).filename() || name == ".." ||
                name.find('\0') != std::string::npos || !name.ends_with(".safetensors")) {
                throw Error(fmt::format("{}: shard name {} is not a plain .safetensors file name",
                                        file.string(), printable(json::serialize(shard))));
            }
            placement.emplace(std::string(tensor), name);
        }
        return placement;
    }

    void add_shard(const std::string& name) {
        const MappedFile& file = files_.emplace_back(path_ / name);
        const std::string where = file.path().string();
        SafetensorsIndex index = parse_safetensors(file.bytes(), where);
        for (const SafetensorsEntry& entry : index.entries) {
            Tensor tensor = to_tensor(entry, where);
            if (!shard_of_.emplace(tensor.name, name).second) {
                throw Error(fmt::format("{}: tensor '{}' is also in '{}'", where,
                                        printable(tensor.name), shard_of_.at(tensor.name)));
            }
            align(tensor);
            tensors_.push_back(std::move(tensor));
        }
        metadata_.insert(metadata_.end(), index.metadata.begin(), index.metadata.end());
        total_bytes_ += file.bytes().size();
        file.check_size_unchanged();
    }

    /// The format promises no alignment. A tensor that lies badly is copied once, so that everyone
    /// else may read elements in place.
    void align(Tensor& tensor) {
        const std::size_t element = dtype_info(tensor.type).block_bytes;
        if (reinterpret_cast<std::uintptr_t>(tensor.data) % element == 0) return;
        auto& copy = copies_.emplace_back(std::make_unique<std::byte[]>(tensor.bytes));
        std::memcpy(copy.get(), tensor.data, tensor.bytes);
        tensor.data = copy.get();
    }

    std::filesystem::path path_;
    json::value config_;
    std::vector<MappedFile> files_;
    std::vector<std::unique_ptr<std::byte[]>> copies_;
    std::vector<Tensor> tensors_;
    std::unordered_map<std::string_view, const Tensor*> by_name_;
    std::unordered_map<std::string, std::string> shard_of_;
    std::vector<std::pair<std::string, std::string>> metadata_;
    std::uint64_t total_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ModelFile> open_safetensors(const std::filesystem::path& folder) {
    return std::make_unique<SafetensorsModel>(folder);
}

}  // namespace skein::model
