#pragma once
// A private directory for one probe, one run or one download.

#include <filesystem>

namespace skein::sandbox {

/// An empty directory of this process's user alone; removed with everything in it.
/// Throws: Error when `parent` (the temporary directory of the system) cannot be written.
class TemporaryDirectory {
  public:
    explicit TemporaryDirectory(
        const std::filesystem::path& parent = std::filesystem::temp_directory_path());
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace skein::sandbox
