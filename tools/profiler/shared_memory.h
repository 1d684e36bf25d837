#pragma once
// Memory files shared with one other process, sealed so that neither side can surprise the other.

#include <cstddef>
#include <cstdint>
#include <span>

namespace skein::tools {

/// An anonymous memory file and our writable mapping of it.
class SharedMemory {
  public:
    /// `theirs_read_only`: whoever receives the descriptor can only map it for reading.
    /// Throws: std::system_error.
    SharedMemory(const char* name, std::size_t bytes, bool theirs_read_only);
    ~SharedMemory();
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory(const SharedMemory&) = delete;

    int fd() const { return fd_; }
    std::span<std::byte> bytes() const { return {data_, size_}; }

  private:
    int fd_ = -1;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace skein::tools
