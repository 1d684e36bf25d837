#pragma once
// Opening the fixtures' models and asking for logits.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/load/model_file.h"
#include "model/load/weights.h"
#include "model/runtime.h"
#include "tests/support/numbers.h"

namespace skein::test {

inline std::filesystem::path fixtures() {
    return std::filesystem::path(SKEIN_TEST_DATA) / "fixtures";
}

/// A model without its tokenizer: the tiny fixtures do not all have one.
inline std::shared_ptr<model::Runtime> open_runtime(const std::filesystem::path& path,
                                                    const model::EngineOptions& options = {}) {
    const auto file = model::open_model_file(path);
    const model::ModelConfig config = file->config();
    return std::make_shared<model::Runtime>(config, model::bind_weights(*file, config), options);
}

inline std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " + path.string());
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A JSON file that is one list of integers.
inline std::vector<int> read_int_list(const std::filesystem::path& path) {
    const std::string text = read_text(path);
    std::vector<int> values;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] < '0' || text[at] > '9') {
            ++at;
            continue;
        }
        std::size_t digits = 0;
        values.push_back(std::stoi(text.substr(at, 12), &digits));
        at += digits;
    }
    return values;
}

inline std::vector<float> copy(model::Logits logits) {
    return {logits.begin(), logits.end()};
}

inline model::Token best(model::Logits logits) {
    return static_cast<model::Token>(std::max_element(logits.begin(), logits.end()) -
                                     logits.begin());
}

/// Tokens that mean nothing but are the same everywhere.
inline model::Tokens some_tokens(int count, int vocab_size, std::uint64_t seed = 1) {
    Numbers numbers(seed);
    model::Tokens tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(numbers.below(vocab_size));
    return tokens;
}

}  // namespace skein::test
