#pragma once
// Where the real model file of the tests lies. A missing file fails the test that asks for it.

#include <cstdlib>
#include <filesystem>

namespace skein::test {

/// SKEIN_TEST_MODEL, else the file that the bootstrap script keeps in the user's cache.
inline std::filesystem::path model_path() {
    if (const char* chosen = std::getenv("SKEIN_TEST_MODEL"); chosen != nullptr && *chosen != 0) {
        return chosen;
    }
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home == nullptr ? "/" : home) /
           ".cache/skein/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

}  // namespace skein::test
