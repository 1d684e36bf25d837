#include "model/load/model_file.h"

#include <fmt/format.h>

#include <cstring>
#include <system_error>

#include "model/error.h"
#include "model/load/gguf_model.h"
#include "model/load/mapped_file.h"
#include "model/load/safetensors_model.h"

namespace skein::model {

std::unique_ptr<ModelFile> open_model_file(const std::filesystem::path& path) {
    std::error_code code;
    if (std::filesystem::is_directory(path, code)) {
        if (!std::filesystem::exists(path / "config.json", code)) {
            throw Error(
                fmt::format("'{}' is a folder without config.json; give a .gguf file or a "
                            "folder with config.json and model.safetensors",
                            path.string()));
        }
        return open_safetensors(path);
    }
    const MappedFile file(path);
    const auto bytes = file.bytes();
    if (bytes.size() < 4 || std::memcmp(bytes.data(), "GGUF", 4) != 0) {
        const bool safetensors = path.extension() == ".safetensors";
        throw Error(fmt::format("'{}' is not a GGUF file{}", path.string(),
                                safetensors ? "; for safetensors give the folder that holds it and "
                                              "its config.json"
                                            : ": it does not start with 'GGUF'"));
    }
    return open_gguf(path);
}

}  // namespace skein::model
