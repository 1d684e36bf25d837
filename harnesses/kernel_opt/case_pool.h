#pragma once
// Inputs with their oracle results, made once a session in processes of their own.
//
// Sets come in pairs: an odd set is the even one before it with one element changed, so that a
// kernel which remembers an address or samples its inputs gives the answer of the wrong set.

#include <map>
#include <memory>

#include "harnesses/kernel_opt/kernel_arm.h"
#include "harnesses/kernel_opt/output_check.h"
#include "tools/profiler/kernel_build.h"

namespace skein::harnesses {

class CasePool {
  public:
    /// Builds generator and reference. Throws: std::runtime_error when they do not build or load.
    /// Lifetime: everything passed must outlive the pool.
    CasePool(const KernelTask& task, const ArmLayout& layout, tools::SandboxThread& thread,
             tools::KernelBuilder& builder, const std::filesystem::path& host_program,
             std::uint64_t secret);

    /// At least `count` sets of the case, a multiple of two; made on first use. The anchor gives
    /// the noise. Throws: std::runtime_error when the anchor itself is wrong.
    const std::vector<InputSet>& sets(const KernelCase& kernel_case, std::size_t count,
                                      KernelArm& anchor);
    /// How each output of this case is compared, in argument order.
    std::vector<OutputRule> rules(const KernelCase& kernel_case) const;

  private:
    InputSet generate(const KernelCase& kernel_case, std::uint64_t seed);
    InputSet variant_of(const KernelCase& kernel_case, const InputSet& base, std::uint64_t seed);
    void ask_oracle(const KernelCase& kernel_case, InputSet& set);
    void call(const KernelCase& kernel_case, std::int64_t operation, std::uint64_t seed);
    void measure_noise(const KernelCase& kernel_case, InputSet& set, KernelArm& anchor,
                       std::uint64_t seed);

    const KernelTask* task_;
    const ArmLayout* layout_;
    std::uint64_t secret_;
    std::unique_ptr<tools::KernelHost> host_;
    std::map<std::string, std::vector<InputSet>> sets_;
};

/// A seed nobody can guess from another one.
std::uint64_t derive_seed(std::uint64_t secret, std::string_view purpose, std::uint64_t index);

}  // namespace skein::harnesses
