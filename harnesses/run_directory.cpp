#include "harnesses/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "agent/store/error.h"
#include "harnesses/exit_code.h"

namespace skein::harnesses {
namespace {

namespace fs = std::filesystem;

int take_lock(const fs::path& directory) {
    const fs::path file = directory / "lock";
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        throw UsageError("cannot write in the run directory " + directory.string() + ": " +
                         std::strerror(errno) + "; choose another with --run-dir");
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ::close(fd);
        throw UsageError("another process is working on the run " + directory.string());
    }
    return fd;
}

}  // namespace

RunDirectory::RunDirectory(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(other.lock_), writer_(std::move(other.writer_)) {
    other.lock_ = -1;
}

RunDirectory::~RunDirectory() {
    writer_.reset();  // the store is closed before the lock is given back
    if (lock_ >= 0) ::close(lock_);
}

RunDirectory RunDirectory::create(const fs::path& path, agent::store::RunRecord record) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) {
        throw UsageError("cannot make the run directory " + path.string() + ": " + error.message() +
                         "; choose another with --run-dir");
    }
    if (fs::exists(path / "skein.db")) {
        throw UsageError(path.string() + " holds a run already: `skein resume " + path.string() +
                         "` continues it, another --run-dir starts a new one");
    }
    RunDirectory run(path, take_lock(path));
    run.writer_ = agent::store::Writer::create(path, record);
    return run;
}

RunDirectory RunDirectory::open(const fs::path& path) {
    RunDirectory run(path, take_lock(path));
    run.writer_ = agent::store::Writer::open(path);
    return run;
}

void RunDirectory::write_file(const std::string& name, std::string_view bytes) const {
    const fs::path target = path_ / name, partial = path_ / (name + ".partial");
    fs::create_directories(target.parent_path());
    {
        std::ofstream file(partial, std::ios::binary | std::ios::trunc);
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        file.flush();
        if (!file) {
            throw agent::store::Error("cannot write " + target.string() +
                                      ": is the disk full? The run itself is stored");
        }
    }
    fs::rename(partial, target);
}

}  // namespace skein::harnesses
