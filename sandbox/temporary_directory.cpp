#include "sandbox/temporary_directory.h"

#include <stdlib.h>

#include <system_error>

#include "sandbox/sandbox.h"

namespace skein::sandbox {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory(const fs::path& parent) {
    std::string pattern = (parent / "skein-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw Error("sandbox: cannot make a directory in " + parent.string());
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

}  // namespace skein::sandbox
