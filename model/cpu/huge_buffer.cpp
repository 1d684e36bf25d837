#include "model/cpu/huge_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <utility>

#include "model/error.h"

namespace skein::model {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20U;

std::byte* map_anonymous(std::size_t bytes, const char* purpose) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw Error("out of memory: the system refused " + std::to_string(bytes) + " bytes for " +
                    purpose);
    return static_cast<std::byte*>(memory);
}

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes, const char* purpose) {
    if (bytes == 0) return;
    if (bytes < kHugePage) {
        data_ = map_anonymous(bytes, purpose);
        bytes_ = bytes;
        return;
    }
    // Huge pages need an aligned start, which mmap does not promise: map more, give the edges back.
    const std::size_t page = 4096;
    bytes = (bytes + page - 1) / page * page;
    std::byte* raw = map_anonymous(bytes + kHugePage, purpose);
    const auto address = reinterpret_cast<std::uintptr_t>(raw);
    const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
    const std::size_t after = kHugePage - before;
    if (before != 0) munmap(raw, before);
    if (after != 0) munmap(raw + before + bytes, after);
    data_ = raw + before;
    bytes_ = bytes;
    madvise(data_, bytes_, MADV_HUGEPAGE);  // a hint; refused on kernels without huge pages
}

HugeBuffer::~HugeBuffer() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

}  // namespace skein::model
