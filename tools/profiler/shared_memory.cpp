#include "tools/profiler/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace skein::tools {

SharedMemory::SharedMemory(const char* name, std::size_t bytes, bool theirs_read_only)
    : fd_(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)), size_(bytes) {
    const auto check = [](bool ok, const char* what) {
        if (!ok) throw std::system_error(errno, std::generic_category(), what);
    };
    check(fd_ >= 0, "memfd_create");
    try {
        check(ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "sizing a shared buffer");
        void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        check(address != MAP_FAILED, "mapping a shared buffer");
        data_ = static_cast<std::byte*>(address);
        // Without the size seals the other side could shrink the file and kill us with SIGBUS.
        int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        if (theirs_read_only) seals |= F_SEAL_FUTURE_WRITE;
        check(fcntl(fd_, F_ADD_SEALS, seals) == 0, "sealing a shared buffer");
    } catch (...) {
        if (data_ != nullptr) munmap(data_, size_);
        close(fd_);
        throw;
    }
}

SharedMemory::~SharedMemory() {
    if (data_ != nullptr) munmap(data_, size_);
    if (fd_ >= 0) close(fd_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

}  // namespace skein::tools
