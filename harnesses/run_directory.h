#pragma once
// A run's directory while a process works in it: its store, and a lock that goes with the process.

#include <filesystem>
#include <memory>
#include <string>

#include "agent/store/writer.h"

namespace skein::harnesses {

class RunDirectory {
  public:
    /// A new run. Throws: UsageError when the directory cannot be made or holds a run already.
    static RunDirectory create(const std::filesystem::path& path, agent::store::RunRecord record);
    /// A run to go on with. Throws: UsageError when another process works on it, store::Error.
    static RunDirectory open(const std::filesystem::path& path);
    ~RunDirectory();
    RunDirectory(RunDirectory&&) noexcept;
    RunDirectory& operator=(RunDirectory&&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::string name() const { return path_.filename().string(); }
    agent::store::Writer& writer() { return *writer_; }
    /// Writes a file of the run (report, winning kernels) atomically. Throws: store::Error.
    void write_file(const std::string& name, std::string_view bytes) const;

  private:
    RunDirectory(std::filesystem::path path, int lock);

    std::filesystem::path path_;
    int lock_ = -1;
    std::unique_ptr<agent::store::Writer> writer_;
};

}  // namespace skein::harnesses
