#include "model/load/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "model/error.h"

namespace skein::model {
namespace {

std::string reason(int code) {
    return std::generic_category().message(code);
}

/// Closes the descriptor and reports; used where the constructor has not finished.
[[noreturn]] void fail(int descriptor, const std::string& message) {
    if (descriptor >= 0) ::close(descriptor);
    throw Error(message);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
    const std::string name = path.string();
    // O_NONBLOCK: opening a named pipe must not wait for a writer; regular files ignore it.
    descriptor_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) {
        fail(-1, fmt::format("cannot open model file '{}': {}", name, reason(errno)));
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
        fail(descriptor_, fmt::format("cannot stat '{}': {}", name, reason(errno)));
    }
    if (!S_ISREG(status.st_mode)) {
        fail(descriptor_, fmt::format("'{}' is not a regular file ({})", name,
                                      S_ISDIR(status.st_mode) ? "it is a directory"
                                                              : "a device, socket or pipe"));
    }
    if (status.st_size <= 0) fail(descriptor_, fmt::format("model file '{}' is empty", name));
    size_ = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (address == MAP_FAILED) {
        fail(descriptor_,
             fmt::format("cannot map '{}' ({} bytes): {}", name, size_, reason(errno)));
    }
    data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
    if (descriptor_ >= 0) ::close(descriptor_);
}

void MappedFile::check_size_unchanged() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
        throw Error(fmt::format("cannot stat '{}': {}", path_.string(), reason(errno)));
    }
    if (static_cast<std::size_t>(status.st_size) != size_) {
        throw Error(fmt::format("'{}' changed while it was open: {} bytes mapped, {} bytes now",
                                path_.string(), size_, status.st_size));
    }
}

}  // namespace skein::model
