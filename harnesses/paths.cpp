#include "harnesses/paths.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "harnesses/exit_code.h"

namespace skein::harnesses {
namespace {

namespace fs = std::filesystem;

fs::path from_environment(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? fs::path() : fs::path(value);
}

fs::path home() {
    const fs::path path = from_environment("HOME");
    return path.empty() ? fs::path("/tmp") : path;
}

}  // namespace

fs::path runs_root() {
    if (fs::path runs = from_environment("SKEIN_RUNS"); !runs.empty()) return runs;
    fs::path state = from_environment("XDG_STATE_HOME");
    if (state.empty()) state = home() / ".local/state";
    return state / "skein/runs";
}

fs::path model_cache() {
    fs::path cache = from_environment("XDG_CACHE_HOME");
    if (cache.empty()) cache = home() / ".cache";
    return cache / "skein/models";
}

fs::path default_model_path() {
    return model_cache() / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

fs::path new_run_directory(const fs::path& root) {
    std::random_device device;
    const auto now = std::chrono::system_clock::now();
    return root / fmt::format("{:%Y%m%d-%H%M%S}-{:04x}", fmt::localtime(now), device() & 0xFFFFU);
}

std::vector<fs::path> run_directories(const fs::path& root) {
    std::vector<fs::path> list;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        if (fs::exists(entry.path() / "skein.db")) list.push_back(entry.path());
    }
    std::sort(list.begin(), list.end());
    return list;
}

fs::path find_run(const fs::path& root, const std::string& name) {
    if (!name.empty() && fs::exists(fs::path(name) / "skein.db")) return name;
    const auto all = run_directories(root);
    if (all.empty()) throw UsageError("no runs below " + root.string() + "; `skein run` makes one");
    if (name.empty()) return all.back();
    std::vector<fs::path> matches;
    for (const fs::path& path : all) {
        if (path.filename().string().starts_with(name)) matches.push_back(path);
    }
    if (matches.size() == 1) return matches.front();
    std::string message = matches.empty() ? "no run '" + name + "' below " + root.string()
                                          : "'" + name + "' fits several runs";
    message += "; there are:";
    for (const fs::path& path : matches.empty() ? all : matches) {
        message += "\n  " + path.filename().string();
    }
    throw UsageError(message);
}

}  // namespace skein::harnesses
