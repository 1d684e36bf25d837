// Any bytes are an ELF file or an error.
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "tools/profiler/elf_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        skein::tools::read_elf_symbols(std::as_bytes(std::span(data, size)));
    } catch (const std::runtime_error&) {
        return 0;
    }
    return 0;
}
