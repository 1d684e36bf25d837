#include "model/load/gguf_model.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "model/error.h"
#include "model/load/mapped_file.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

struct Shard {
    MappedFile file;
    GgufIndex index;
};

Shard open_shard(const std::filesystem::path& path) {
    MappedFile file(path);
    GgufIndex index = parse_gguf(file.bytes(), path.string());
    return {std::move(file), std::move(index)};
}

/// Parts of `<prefix>-00002-of-00003.gguf`.
struct ShardName {
    std::string prefix;
    std::uint64_t number = 0;  ///< from 1
    std::uint64_t count = 0;

    std::string file_name(std::uint64_t n) const {
        return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, n, count);
    }
};

std::optional<std::uint64_t> five_digits(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + 5, value);
    if (error != std::errc() || end != text.data() + 5) return std::nullopt;
    return value;
}

std::optional<ShardName> parse_shard_name(const std::string& name) {
    constexpr std::size_t kTail = std::string_view("-00001-of-00003.gguf").size();
    if (name.size() <= kTail) return std::nullopt;
    const std::string_view tail = std::string_view(name).substr(name.size() - kTail);
    if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") {
        return std::nullopt;
    }
    const auto number = five_digits(tail.substr(1));
    const auto count = five_digits(tail.substr(10));
    if (!number || !count) return std::nullopt;
    return ShardName{name.substr(0, name.size() - kTail), *number, *count};
}

void check_shard(const GgufIndex& index, const ShardName& name, std::uint64_t number) {
    const std::uint64_t count = index.unsigned_value("split.count").value_or(0);
    const std::optional<std::uint64_t> no = index.unsigned_value("split.no");
    if (count != name.count) {
        throw Error(fmt::format("{}: 'split.count' is {}, the file name says {} shards",
                                index.where, count, name.count));
    }
    if (!no || *no + 1 != number) {
        throw Error(
            fmt::format("{}: the file name says shard {} of {}, but 'split.no' says it is "
                        "shard {}; the file was renamed or is the wrong one",
                        index.where, number, count, no ? fmt::format("{}", *no + 1) : "unknown"));
    }
}

/// Opens every shard of the set that `first` (opened from `path`) belongs to, in order.
std::vector<Shard> open_all_shards(const std::filesystem::path& path, Shard first) {
    std::vector<Shard> shards;
    const std::uint64_t count = first.index.unsigned_value("split.count").value_or(1);
    const std::optional<ShardName> name = parse_shard_name(path.filename().string());
    if (count <= 1 && (!name || name->count <= 1)) {
        shards.push_back(std::move(first));
        return shards;
    }
    if (!name) {
        throw Error(fmt::format(
            "{}: this is shard {} of {}; its name must end in "
            "-0000N-of-{:05}.gguf so that the others can be found",
            path.string(), first.index.unsigned_value("split.no").value_or(0) + 1, count, count));
    }
    check_shard(first.index, *name, name->number);
    for (std::uint64_t n = 1; n <= name->count; ++n) {
        const std::filesystem::path sibling = path.parent_path() / name->file_name(n);
        if (n == name->number) {
            shards.push_back(std::move(first));
        } else if (!std::filesystem::exists(sibling)) {
            throw Error(
                fmt::format("shard {} of {} is missing: '{}'", n, name->count, sibling.string()));
        } else {
            shards.push_back(open_shard(sibling));
        }
        check_shard(shards.back().index, *name, n);
    }
    return shards;
}

class GgufModel final : public ModelFile {
  public:
    GgufModel(std::filesystem::path path, std::vector<Shard> shards)
        : path_(std::move(path)), shards_(std::move(shards)) {
        for (const Shard& shard : shards_) {
            tensors_.insert(tensors_.end(), shard.index.tensors.begin(), shard.index.tensors.end());
            total_bytes_ += shard.file.bytes().size();
        }
        for (const Tensor& tensor : tensors_) {
            if (by_name_.emplace(tensor.name, &tensor).second) continue;
            throw Error(
                fmt::format("{}: tensor '{}' occurs in two shards", path_.string(), tensor.name));
        }
        const auto total = metadata().unsigned_value("split.tensors.count");
        if (shards_.size() > 1 && total && *total != tensors_.size()) {
            throw Error(
                fmt::format("{}: 'split.tensors.count' is {}, the {} shards hold {} tensors",
                            path_.string(), *total, shards_.size(), tensors_.size()));
        }
        for (const Shard& shard : shards_) shard.file.check_size_unchanged();
    }

    const std::filesystem::path& path() const override { return path_; }
    std::string_view format() const override { return "gguf"; }
    const std::vector<Tensor>& tensors() const override { return tensors_; }
    const Tensor* find(std::string_view name) const override {
        const auto it = by_name_.find(name);
        return it == by_name_.end() ? nullptr : it->second;
    }
    std::vector<std::pair<std::string, std::string>> describe() const override {
        std::vector<std::pair<std::string, std::string>> lines;
        for (const GgufPair& pair : metadata().pairs) {
            lines.emplace_back(printable(pair.key), describe_value(pair));
        }
        return lines;
    }
    ModelConfig config(const ConfigOptions& options) const override {
        return gguf_config(
            metadata(), [this](std::string_view name) { return find(name); }, options);
    }
    Vocabulary vocabulary() const override { return gguf_vocabulary(metadata()); }
    std::string chat_template() const override {
        return std::string(metadata().string_value("tokenizer.chat_template").value_or(""));
    }
    std::uint64_t total_bytes() const override { return total_bytes_; }

  private:
    const GgufIndex& metadata() const { return shards_.front().index; }

    std::filesystem::path path_;
    std::vector<Shard> shards_;
    std::vector<Tensor> tensors_;
    std::unordered_map<std::string_view, const Tensor*> by_name_;
    std::uint64_t total_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ModelFile> open_gguf(const std::filesystem::path& path) {
    return std::make_unique<GgufModel>(path, open_all_shards(path, open_shard(path)));
}

}  // namespace skein::model
