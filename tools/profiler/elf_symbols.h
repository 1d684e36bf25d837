#pragma once
// What a built library defines, imports and needs, read from its ELF file without running anything.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace skein::tools {

struct ElfSymbols {
    std::vector<std::string> imports;  ///< undefined symbols the loader will look up
    std::vector<std::string> defines;  ///< global symbols it defines, also hidden ones
    std::vector<std::string> needed;   ///< libraries it asks for (DT_NEEDED)
    bool has_indirect_functions = false;  ///< STT_GNU_IFUNC: code that runs while loading
};

/// Reads a little-endian ELF64 shared object. Versions after '@' are not part of the names.
/// Throws: std::runtime_error naming the part that is out of bounds or unknown.
ElfSymbols read_elf_symbols(std::span<const std::byte> file);

}  // namespace skein::tools
