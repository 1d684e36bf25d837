#pragma once
// A whole file mapped read-only. The size is taken from the open descriptor, and the descriptor is
// kept, so that the mapping and the size belong to the same file even if the path is replaced.

#include <cstddef>
#include <filesystem>
#include <span>

namespace skein::model {

class MappedFile {
  public:
    /// Throws: Error when the path is missing, not a regular file, empty or cannot be mapped.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    MappedFile& operator=(MappedFile&&) = delete;

    const std::filesystem::path& path() const { return path_; }
    /// Lifetime: as long as this object (moving it keeps the address).
    std::span<const std::byte> bytes() const { return {data_, size_}; }
    /// Throws: Error when the file on disk no longer has the size that was mapped; reading a
    /// mapping past the end of a shortened file would kill the process.
    void check_size_unchanged() const;

  private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace skein::model
