#pragma once
// Builds kernels with the machine's compiler and compares them with a task's oracle, in this
// process. For code the project itself wrote; candidates of others go through the grader.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harnesses/kernel_opt/task.h"

namespace skein::testing {

/// A directory that is removed with everything in it.
class ScratchDirectory {
  public:
    ScratchDirectory();
    ~ScratchDirectory();
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// One translation unit, compiled and loaded. Throws: std::runtime_error with the compiler's words.
class LoadedKernel {
  public:
    LoadedKernel(const std::filesystem::path& scratch, const std::string& source,
                 const std::vector<std::string>& flags);
    ~LoadedKernel();
    LoadedKernel(const LoadedKernel&) = delete;
    LoadedKernel& operator=(const LoadedKernel&) = delete;
    void* symbol(const std::string& name) const;

  private:
    void* handle_ = nullptr;
};

/// The buffers of one call, each between guard bytes and 64-byte aligned.
class CallBuffers {
  public:
    CallBuffers(const harnesses::KernelTask& task, const harnesses::KernelCase& entry,
                const LoadedKernel& generator, std::uint64_t seed);
    bool same_inputs(const CallBuffers& other) const;
    /// Poisons the outputs and calls the kernel.
    void call(const LoadedKernel& kernel);
    /// Processor time.
    double seconds_per_call(const LoadedKernel& kernel, int calls);
    /// Empty when the last call's outputs are right, else what is wrong. `noise` is the anchor's
    /// scaled error on these inputs.
    std::string verify(const LoadedKernel& reference, double noise);
    /// Largest scaled error of the last call; also of the anchor, as noise.
    double scaled_error(const LoadedKernel& reference);

  private:
    struct Buffer {
        std::vector<unsigned char> storage, original;
        unsigned char* data = nullptr;
        std::size_t bytes = 0, count = 0;
    };
    struct Errors {
        double worst = 0;
        std::string mismatch;  // the first exact mismatch, non-finite value or broken guard
    };
    void poison();
    Errors compare(const LoadedKernel& reference);

    const harnesses::KernelTask& task_;
    const harnesses::KernelCase& case_;
    std::vector<Buffer> buffers_;  // one an argument; empty for sizes
};

}  // namespace skein::testing
