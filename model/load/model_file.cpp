#include "model/load/model_file.h"

#include <fmt/format.h>

#include "model/error.h"
#include "model/load/gguf_model.h"

namespace skein::model {

std::unique_ptr<ModelFile> open_model_file(const std::filesystem::path& path) {
    return open_gguf(path);
}

}  // namespace skein::model
