#pragma once
// One kernel under a task's ABI: fills its inputs, poisons its outputs, calls it and looks at it.

#include <optional>
#include <random>
#include <vector>

#include "harnesses/kernel_opt/task.h"
#include "tools/profiler/kernel_host.h"

namespace skein::harnesses {

using Bytes = std::vector<std::byte>;

/// Inputs of one call and what the oracle says of them, in argument order.
struct InputSet {
    std::vector<Bytes> inputs;    ///< of every input and inout argument
    std::vector<Bytes> expected;  ///< of every output and inout argument
    double noise = 0;             ///< the anchor's own error on these inputs
    double allowed = 0;           ///< largest accepted error
};

/// Where the buffers of one call start. Drawn anew for most calls, shared by both arms of a pair.
struct Placement {
    std::vector<std::uint64_t> offsets;
    std::uint32_t poison = 0;
};

/// The buffers of a task's kernel over all its cases.
class ArmLayout {
  public:
    explicit ArmLayout(const KernelTask& task);
    std::vector<tools::HostBuffer> host_buffers() const;
    Placement draw(const KernelCase& kernel_case, std::mt19937_64& random) const;
    std::vector<std::uint64_t> bytes_of(const KernelCase& kernel_case) const;
    std::vector<std::int64_t> sizes_of(const KernelCase& kernel_case) const;
    /// The buffer arguments, in order; sizes are left out.
    const std::vector<tools::KernelArgument>& arguments() const { return arguments_; }

  private:
    const KernelTask* task_;
    std::vector<tools::KernelArgument> arguments_;
    std::vector<std::uint64_t> capacities_;  ///< with room to move
};

/// What one call showed. `outputs` is reused by the next call.
struct ArmCall {
    double ns = 0;
    tools::HostAudit audit;
    std::optional<std::size_t> overrun;  ///< buffer argument with a changed byte next to it
};

class KernelArm {
  public:
    /// Throws: tools::HostFailure when the library cannot be loaded.
    KernelArm(tools::SandboxThread& thread, const ArmLayout& layout,
              std::filesystem::path host_program, std::filesystem::path library,
              std::uint64_t seed);

    /// Throws: tools::HostFailure.
    ArmCall call(const KernelCase& kernel_case, const InputSet& set, const Placement& placement,
                 std::chrono::milliseconds timeout, std::uint32_t repeat = 1);
    /// Of the last call, in order of the output and inout arguments.
    const std::vector<Bytes>& outputs() const { return outputs_; }

  private:
    void fill(const InputSet& set, const Placement& placement);
    void spoil_inputs(const InputSet& set, const Placement& placement);
    void restore_inputs();

    struct Spoiled {
        std::byte* at;
        std::byte value;
    };

    const ArmLayout* layout_;
    tools::KernelHost host_;
    std::mt19937_64 random_;
    std::vector<Bytes> outputs_;
    std::vector<Spoiled> spoiled_;
};

}  // namespace skein::harnesses
