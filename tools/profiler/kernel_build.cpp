#include "tools/profiler/kernel_build.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <chrono>
#include <fstream>
#include <stdexcept>

namespace skein::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInside = "/build";
constexpr const char* kLibrary = "kernel.so";
constexpr std::uintmax_t kMaxLibraryBytes = 64 << 20;

const char* type_name(ElementType type) {
    switch (type) {
        case ElementType::f32:
            return "float";
        case ElementType::f64:
            return "double";
        case ElementType::i8:
            return "signed char";
        case ElementType::u8:
            return "unsigned char";
        case ElementType::i32:
            return "int";
        case ElementType::u32:
            return "unsigned int";
        case ElementType::i64:
            return "long";
    }
    throw std::logic_error("element type");
}

std::vector<std::byte> read_file(const fs::path& path) {
    const std::uintmax_t bytes = fs::file_size(path);
    if (bytes > kMaxLibraryBytes) {
        throw std::runtime_error(fmt::format(
            "the built library has {} bytes, at most {} are loaded", bytes, kMaxLibraryBytes));
    }
    std::vector<std::byte> content(bytes);
    std::ifstream in(path, std::ios::binary);
    in.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(bytes));
    if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
    return content;
}

std::string key_of(const BuildRequest& request, const std::string& compiler) {
    // Lengths keep two different requests from spelling the same string.
    std::string everything;
    const auto add = [&](const std::string& part) {
        everything += fmt::format("{}:", part.size()) + part;
    };
    add(compiler);
    add(request.language_standard);
    for (const std::string& flag : request.flags) add(flag);
    for (const SourceFile& file : request.files) {
        add(file.name);
        add(file.text);
    }
    return sha256_hex(everything);
}

std::vector<std::string> compile_command(const BuildRequest& request, const std::string& compiler) {
    std::vector<std::string> argv{compiler, "-std=" + request.language_standard};
    argv.insert(argv.end(), request.flags.begin(), request.flags.end());
    // Unique symbols would survive dlclose; unresolved ones are errors with a name; no library
    // but the language's own is linked.
    for (const char* flag : {"-fPIC", "-shared", "-fno-gnu-unique", "-fmax-errors=5",
                             "-fdiagnostics-color=never", "-Wl,--no-undefined", "-Wl,-z,now"}) {
        argv.emplace_back(flag);
    }
    for (const SourceFile& file : request.files) {
        if (file.name.ends_with(".cc") || file.name.ends_with(".cpp")) argv.push_back(file.name);
    }
    argv.insert(argv.end(), {"-o", kLibrary});
    return argv;
}

std::string cut(std::string text) {
    if (text.size() <= kDiagnosticBytes) return text;
    text.resize(kDiagnosticBytes);
    return text + "\n[more diagnostics left out]\n";
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
    std::array<unsigned char, 32> digest{};
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
        throw std::runtime_error("SHA-256 failed");
    }
    std::string text;
    for (unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

SourceFile make_entry_shim(const KernelSignature& signature) {
    std::string declaration, call;
    int buffer = 0, size = 0;
    for (const KernelArgument& argument : signature.arguments) {
        const char* comma = declaration.empty() ? "" : ", ";
        if (argument.role == KernelArgument::Role::size) {
            declaration += fmt::format("{}long", comma);
            call += fmt::format("{}sizes[{}]", comma, size++);
            continue;
        }
        const bool constant = argument.role == KernelArgument::Role::input;
        const std::string type =
            fmt::format("{}{}*", constant ? "const " : "", type_name(argument.type));
        declaration += comma + type;
        call += fmt::format("{}({})buffers[{}]", comma, type, buffer++);
    }
    return {"skein_entry.cc",
            fmt::format("extern \"C\" void {0}({1});\n"
                        "extern \"C\" void skein_call(void* const* buffers, const long* sizes) {{\n"
                        "    static_cast<void>(buffers);\n    static_cast<void>(sizes);\n"
                        "    {0}({2});\n}}\n",
                        signature.entry, declaration, call)};
}

KernelBuilder::KernelBuilder(sandbox::Sandbox& sandbox, fs::path scratch, std::string compiler)
    : sandbox_(sandbox), scratch_(std::move(scratch)), compiler_(std::move(compiler)) {
    fs::create_directories(scratch_);
}

sandbox::ProcessResult KernelBuilder::run(const fs::path& directory,
                                          const std::vector<std::string>& argv, bool writable) {
    sandbox::SandboxPolicy policy;
    policy.workspace = directory;
    policy.workspace_target = kInside;
    policy.workspace_read_only = !writable;
    sandbox::Command command;
    command.argv = argv;
    command.working_directory = kInside;
    sandbox::ResourceLimits limits;
    limits.wall_time = std::chrono::seconds(60);
    limits.memory_bytes = 2ULL << 30;
    limits.file_bytes = kMaxLibraryBytes;
    limits.disk_bytes = 4 * kMaxLibraryBytes;
    limits.pids = 32;
    sandbox::ProcessResult result =
        sandbox::run_blocking(sandbox_, std::move(policy), std::move(command), limits);
    if (result.outcome == sandbox::Outcome::setup_failed) {
        throw std::runtime_error(
            fmt::format("{} cannot be started in the sandbox: {}", argv.front(), result.detail));
    }
    return result;
}

BuildResult KernelBuilder::compile(const BuildRequest& request, const fs::path& directory) {
    const auto start = std::chrono::steady_clock::now();
    fs::create_directories(directory);
    for (const SourceFile& file : request.files) {
        if (file.name.empty() || file.name.find('/') != std::string::npos) {
            throw std::runtime_error(fmt::format("'{}' is not a plain file name", file.name));
        }
        std::ofstream(directory / file.name, std::ios::binary) << file.text;
    }
    const sandbox::ProcessResult process =
        run(directory, compile_command(request, compiler_), true);
    BuildResult result;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.diagnostics = cut(process.err.text());
    if (!process.ok()) {
        if (process.outcome != sandbox::Outcome::exited) {
            result.diagnostics +=
                fmt::format("compiler stopped: {}\n", sandbox::to_string(process.outcome));
        }
        return result;
    }
    // Whoever writes the directory chooses what lies there: a link out of it is not a library.
    result.library = directory / kLibrary;
    if (!fs::is_regular_file(fs::symlink_status(result.library))) {
        result.diagnostics += "the compiler left no library\n";
        return result;
    }
    result.symbols = read_elf_symbols(read_file(result.library));
    result.ok = true;
    return result;
}

BuildResult KernelBuilder::build(const BuildRequest& request) {
    const std::string key = key_of(request, compiler_);
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = built_.find(key); found != built_.end()) {
            BuildResult result = found->second;
            result.seconds = 0;
            return result;
        }
    }
    BuildResult result = compile(request, scratch_ / key.substr(0, 32));
    const std::lock_guard lock(mutex_);
    built_[key] = result;
    return result;
}

std::string KernelBuilder::inspect(const BuildResult& built, const std::vector<std::string>& argv) {
    const sandbox::ProcessResult process = run(built.library.parent_path(), argv, false);
    return process.out.text() + process.err.text();
}

}  // namespace skein::tools
