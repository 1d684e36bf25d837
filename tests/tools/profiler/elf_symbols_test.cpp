#include "tools/profiler/elf_symbols.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <random>

using namespace skein::tools;

namespace {

/// This test program itself: a real file with every table.
std::vector<std::byte> own_file() {
    std::ifstream in("/proc/self/exe", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::byte> bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return bytes;
}

}  // namespace

TEST_SUITE("tools/profiler/elf_symbols") {
    TEST_CASE("elf_symbols: reads needed libraries and imports of a real program") {
        const ElfSymbols symbols = read_elf_symbols(own_file());
        const auto has = [](const std::vector<std::string>& names, const char* wanted) {
            return std::find(names.begin(), names.end(), wanted) != names.end();
        };
        CHECK(has(symbols.needed, "libc.so.6"));
        CHECK(has(symbols.imports, "memcpy"));
        CHECK(has(symbols.defines, "main"));
    }

    TEST_CASE("elf_symbols: refuses what is no ELF file") {
        CHECK_THROWS_AS(read_elf_symbols({}), std::runtime_error);
        const std::vector<std::byte> zeros(4096);
        CHECK_THROWS_AS(read_elf_symbols(zeros), std::runtime_error);
    }

    TEST_CASE("elf_symbols: a cut file is refused wherever it is cut") {
        const std::vector<std::byte> file = own_file();
        const std::span<const std::byte> bytes(file);
        for (std::size_t kept = 0; kept < file.size(); kept += file.size() / 37 + 1) {
            CAPTURE(kept);
            CHECK_THROWS_AS(read_elf_symbols(bytes.first(kept)), std::runtime_error);
        }
    }

    TEST_CASE("elf_symbols: damaged headers give an error or a result, never a crash") {
        std::vector<std::byte> file = own_file();
        constexpr unsigned kSeed = 5;
        CAPTURE(kSeed);
        std::mt19937 random(kSeed);
        for (int round = 0; round < 200; ++round) {
            const std::size_t at = random() % 64;
            const std::byte old = file[at];
            file[at] = static_cast<std::byte>(random());
            try {
                read_elf_symbols(file);
            } catch (const std::runtime_error&) {
                // refused
            }
            file[at] = old;
        }
    }
}
