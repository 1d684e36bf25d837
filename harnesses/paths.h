#pragma once
// Where things lie on this machine. The only file that reads the environment.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace skein::harnesses {

/// ${SKEIN_RUNS}, else ${XDG_STATE_HOME:-~/.local/state}/skein/runs.
std::filesystem::path runs_root();
/// ${XDG_CACHE_HOME:-~/.cache}/skein/models.
std::filesystem::path model_cache();
/// The default model's file in the cache, whether or not it is there.
std::filesystem::path default_model_path();
constexpr const char* kDefaultModelSha256 =
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// A new directory name below `root`: time and four random digits.
std::filesystem::path new_run_directory(const std::filesystem::path& root);
/// Run directories below `root`, oldest first.
std::vector<std::filesystem::path> run_directories(const std::filesystem::path& root);
/// A directory, a name or a unique prefix of a name below `root`; empty means the newest.
/// Throws: UsageError that lists what there is.
std::filesystem::path find_run(const std::filesystem::path& root, const std::string& name);

}  // namespace skein::harnesses
