#pragma once
// Zeroed memory straight from the system, on huge pages where it is large enough to profit.

#include <cstddef>

namespace skein::model {

/// Owner of one mapping. The bytes start as zero and take no memory until they are touched.
class HugeBuffer {
  public:
    HugeBuffer() = default;
    /// Throws: Error naming `purpose` when the system refuses the memory.
    HugeBuffer(std::size_t bytes, const char* purpose);
    ~HugeBuffer();
    HugeBuffer(HugeBuffer&& other) noexcept;
    HugeBuffer& operator=(HugeBuffer&& other) noexcept;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace skein::model
