#pragma once
// Compiles kernels inside the sandbox into shared objects with one uniform entry.

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"
#include "tools/profiler/elf_symbols.h"
#include "tools/profiler/signature.h"

namespace skein::tools {

struct SourceFile {
    std::string name;  ///< a plain file name; *.cc and *.cpp are compiled, others only lie beside
    std::string text;
};

struct BuildRequest {
    std::vector<SourceFile> files;
    std::vector<std::string> flags;  ///< trusted: the caller has checked them
    std::string language_standard = "c++20";
};

struct BuildResult {
    bool ok = false;
    std::filesystem::path library;
    std::string diagnostics;  ///< the compiler's words, at most kDiagnosticBytes
    ElfSymbols symbols;
    double seconds = 0;  ///< 0 when it came from the cache
};

inline constexpr std::size_t kDiagnosticBytes = 4000;

/// The translation unit that defines `skein_call(buffers, sizes)` and calls the typed entry; a
/// kernel that defines skein_call itself does not link.
SourceFile make_entry_shim(const KernelSignature& signature);

/// Builds into `scratch`, one directory a content hash, and keeps the results. Thread-safe.
class KernelBuilder {
  public:
    /// Lifetime: `sandbox` must outlive this.
    KernelBuilder(sandbox::Sandbox& sandbox, std::filesystem::path scratch,
                  std::string compiler = "g++");

    /// A source that does not compile is a result. Throws: std::runtime_error when the sandbox
    /// or the compiler cannot be started.
    BuildResult build(const BuildRequest& request);
    /// Output of one more command on the built directory (objdump, the compiler's remarks), for
    /// explanations. Throws like `build`.
    std::string inspect(const BuildResult& built, const std::vector<std::string>& argv);
    const std::string& compiler() const { return compiler_; }

  private:
    sandbox::ProcessResult run(const std::filesystem::path& directory,
                               const std::vector<std::string>& argv, bool writable);
    BuildResult compile(const BuildRequest& request, const std::filesystem::path& directory);

    sandbox::Sandbox& sandbox_;
    std::filesystem::path scratch_;
    std::string compiler_;
    std::mutex mutex_;
    std::map<std::string, BuildResult> built_;  ///< by content hash
};

/// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view bytes);

}  // namespace skein::tools
