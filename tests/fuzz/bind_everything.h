#pragma once
// Binds tensors that a fuzzer made up to whatever architecture their config names, with and without
// the dense approximation, and reads an end of each bound tensor.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/load/inventory.h"
#include "model/load/model_file.h"
#include "model/load/weights.h"

namespace skein::test {

using ConfigReader = std::function<model::ModelConfig(model::ConfigOptions)>;

/// Tensors and a config without a file around them.
class TensorsInMemory final : public model::ModelFile {
  public:
    TensorsInMemory(const std::vector<model::Tensor>& tensors, std::string_view format,
                    ConfigReader read)
        : tensors_(tensors), format_(format), read_(std::move(read)) {}

    const std::filesystem::path& path() const override { return path_; }
    std::string_view format() const override { return format_; }
    const std::vector<model::Tensor>& tensors() const override { return tensors_; }
    const model::Tensor* find(std::string_view name) const override {
        for (const model::Tensor& t : tensors_) {
            if (t.name == name) return &t;
        }
        return nullptr;
    }
    std::vector<std::pair<std::string, std::string>> describe() const override { return {}; }
    model::ModelConfig config(const model::ConfigOptions& options) const override {
        return read_(options);
    }
    model::Vocabulary vocabulary() const override { return {}; }
    std::string chat_template() const override { return {}; }
    std::uint64_t total_bytes() const override { return 0; }

  private:
    const std::vector<model::Tensor>& tensors_;
    std::string_view format_;
    ConfigReader read_;
    std::filesystem::path path_ = "fuzz";
};

/// Returns a number that depends on everything that was read.
inline std::size_t bind_everything(const std::vector<model::Tensor>& tensors,
                                   std::string_view format, const ConfigReader& read) {
    const TensorsInMemory file(tensors, format, read);
    std::size_t sum = 0;
    for (const bool dense : {false, true}) {
        try {
            const model::ModelConfig config = file.config({.dense_approximation = dense});
            const model::Weights weights = model::bind_weights(file, config);
            sum += static_cast<std::size_t>(model::take_inventory(config, weights).bytes);
            for (const model::Tensor& t : weights.derived) {
                sum += static_cast<std::size_t>(t.data[0]) +
                       static_cast<std::size_t>(t.data[t.bytes - 1]);
            }
        } catch (const model::Error&) {
        }
    }
    return sum;
}

}  // namespace skein::test
