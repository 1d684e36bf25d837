#pragma once
// Finds the helper programs that are installed or built with this one.

#include <filesystem>
#include <string_view>

namespace skein::tools {

/// `name` beside this executable, or in libexec/skein of a directory above it.
/// Throws: std::runtime_error that lists where it was looked for.
std::filesystem::path helper_program(std::string_view name);

}  // namespace skein::tools
