#include "tools/profiler/elf_symbols.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <stdexcept>
#include <string_view>

namespace skein::tools {
namespace {

// A library has one table of each kind. More, or names that overlap endlessly, are there to keep
// the reader busy.
constexpr int kMaxSymbolTables = 2;
constexpr std::size_t kMaxNameBytes = 64 << 20;
constexpr std::size_t kMaxNeeded = 64;

[[noreturn]] void malformed(std::string_view what) {
    throw std::runtime_error(fmt::format("not a usable ELF file: {}", what));
}

class Reader {
  public:
    explicit Reader(std::span<const std::byte> file) : file_(file) {}

    template <class T>
    T at(std::uint64_t offset, const char* what) const {
        if (offset > file_.size() || file_.size() - offset < sizeof(T)) malformed(what);
        T value;
        std::memcpy(&value, file_.data() + offset, sizeof value);
        return value;
    }

    std::string string_at(const Elf64_Shdr& table, std::uint64_t index) const {
        check_range(table, "string table");
        if (index >= table.sh_size) malformed("string index");
        const char* first = reinterpret_cast<const char*>(file_.data()) + table.sh_offset + index;
        return {first, strnlen(first, table.sh_size - index)};
    }

    void check_range(const Elf64_Shdr& section, const char* what) const {
        if (section.sh_offset > file_.size() ||
            file_.size() - section.sh_offset < section.sh_size) {
            malformed(what);
        }
    }

  private:
    std::span<const std::byte> file_;
};

void read_symbols(const Reader& reader, const Elf64_Shdr& table, const Elf64_Shdr& names,
                  ElfSymbols& out) {
    reader.check_range(table, "symbol table");
    std::size_t name_bytes = 0;
    for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
        const auto symbol = reader.at<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym), "symbol");
        if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) out.has_indirect_functions = true;
        if (symbol.st_name == 0 || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
        std::string name = reader.string_at(names, symbol.st_name);
        name_bytes += name.size();
        if (name_bytes > kMaxNameBytes) malformed("symbol names are too long");
        if (const auto version = name.find('@'); version != std::string::npos) {
            name.resize(version);
        }
        // The full table repeats the imports of the dynamic one; only that one binds.
        if (symbol.st_shndx != SHN_UNDEF) {
            out.defines.push_back(std::move(name));
        } else if (table.sh_type == SHT_DYNSYM) {
            out.imports.push_back(std::move(name));
        }
    }
}

void read_needed(const Reader& reader, const Elf64_Shdr& table, const Elf64_Shdr& names,
                 ElfSymbols& out) {
    reader.check_range(table, "dynamic section");
    for (std::uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Dyn); ++i) {
        const auto entry =
            reader.at<Elf64_Dyn>(table.sh_offset + i * sizeof(Elf64_Dyn), "dynamic entry");
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED) {
            if (out.needed.size() == kMaxNeeded) malformed("too many needed libraries");
            out.needed.push_back(reader.string_at(names, entry.d_un.d_val));
        }
    }
}

}  // namespace

ElfSymbols read_elf_symbols(std::span<const std::byte> file) {
    const Reader reader(file);
    const auto header = reader.at<Elf64_Ehdr>(0, "header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) malformed("magic");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
        malformed("not 64-bit little-endian");
    }
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0) malformed("no sections");
    const auto section = [&](std::uint64_t index) {
        if (index >= header.e_shnum) malformed("section index");
        if (header.e_shoff > file.size()) malformed("section table");
        return reader.at<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr), "section");
    };
    ElfSymbols out;
    bool has_dynamic = false;
    int n_symbol_tables = 0;
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr table = section(i);
        if (table.sh_type == SHT_DYNSYM || table.sh_type == SHT_SYMTAB) {
            if (++n_symbol_tables > kMaxSymbolTables) malformed("too many symbol tables");
            read_symbols(reader, table, section(table.sh_link), out);
        } else if (table.sh_type == SHT_DYNAMIC) {
            if (has_dynamic) malformed("two dynamic sections");
            has_dynamic = true;
            read_needed(reader, table, section(table.sh_link), out);
        }
    }
    if (!has_dynamic) malformed("no dynamic section");
    return out;
}

}  // namespace skein::tools
