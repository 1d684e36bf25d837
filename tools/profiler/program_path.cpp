#include "tools/profiler/program_path.h"

#include <fmt/format.h>

#include <stdexcept>

namespace skein::tools {

namespace fs = std::filesystem;

fs::path helper_program(std::string_view name) {
    const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    if (fs::exists(here / name)) return here / name;
    // An installed program lies in bin, one of a build tree a few directories down.
    constexpr int kLevels = 4;
    fs::path above = here;
    for (int i = 0; i < kLevels; ++i, above = above.parent_path()) {
        const fs::path candidate = above / "libexec" / "skein" / name;
        if (fs::exists(candidate)) return candidate;
    }
    throw std::runtime_error(
        fmt::format("{} not found: neither in {} nor in libexec/skein of the {} directories from "
                    "there upwards; build or install it with skein",
                    name, here.string(), kLevels));
}

}  // namespace skein::tools
