#include "harnesses/kernel_opt/case_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace skein::harnesses {
namespace {

using Role = tools::KernelArgument::Role;

constexpr std::int64_t kGenerate = 0, kReference = 1;
constexpr std::size_t kDistributionBytes = 256;
constexpr double kSaneNoise = 1e-2;  ///< an fp32 anchor further off is not a reference
constexpr std::chrono::minutes kOracleTimeout{2};

/// Operation, seed, then the axes; the distribution's name, then inputs, then outputs.
constexpr const char* kOracleEntry = R"(
extern "C" void skein_generate(const long* sizes, unsigned long seed, const char* distribution,
                               void* const* inputs);
extern "C" void skein_reference(const long* sizes, const void* const* inputs,
                                void* const* outputs);
extern "C" void skein_call(void* const* buffers, const long* sizes) {
    if (sizes[0] == 0) {
        skein_generate(sizes + 2, static_cast<unsigned long>(sizes[1]),
                       static_cast<const char*>(buffers[0]), buffers + 1);
    } else {
        skein_reference(sizes + 2, buffers + 1, buffers + 1 + SKEIN_INPUTS);
    }
}
)";

std::string read_text(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
    return text.str();
}

std::size_t count_inputs(const ArmLayout& layout) {
    return static_cast<std::size_t>(
        std::count_if(layout.arguments().begin(), layout.arguments().end(),
                      [](const auto& argument) { return argument.role != Role::output; }));
}

/// The oracle's buffers: the distribution, inputs as the kernel has them, results in its types.
std::vector<tools::HostBuffer> oracle_buffers(const ArmLayout& layout) {
    std::vector<tools::HostBuffer> buffers{{kDistributionBytes, true}};
    const auto host_buffers = layout.host_buffers();
    const auto& arguments = layout.arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role != Role::output) buffers.push_back({host_buffers[i].capacity, true});
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role == Role::input) continue;
        const std::size_t growth =
            oracle_bytes(arguments[i].type) / tools::element_bytes(arguments[i].type);
        buffers.push_back({host_buffers[i].capacity * growth, true});
    }
    return buffers;
}

}  // namespace

std::uint64_t derive_seed(std::uint64_t secret, std::string_view purpose, std::uint64_t index) {
    const std::string hash =
        tools::sha256_hex(fmt::format("{:016x} {} {}", secret, purpose, index));
    return std::stoull(hash.substr(0, 16), nullptr, 16);
}

CasePool::CasePool(const KernelTask& task, const ArmLayout& layout, tools::SandboxThread& thread,
                   tools::KernelBuilder& builder, const std::filesystem::path& host_program,
                   std::uint64_t secret)
    : task_(&task), layout_(&layout), secret_(secret) {
    tools::BuildRequest request;
    request.files = {{"reference.cc", read_text(task.directory / "reference.cc")},
                     {"gen.cc", read_text(task.directory / "gen.cc")},
                     {"oracle_entry.cc", kOracleEntry}};
    if (const auto abi = task.directory / "abi.h"; std::filesystem::exists(abi)) {
        request.files.push_back({"abi.h", read_text(abi)});
    }
    request.flags = {"-O3", "-march=native", "-ffp-contract=off",
                     fmt::format("-DSKEIN_INPUTS={}", count_inputs(layout))};
    request.language_standard = task.language_standard;
    const tools::BuildResult built = builder.build(request);
    if (!built.ok) {
        throw std::runtime_error(
            fmt::format("task {}: the oracle does not build:\n{}", task.id, built.diagnostics));
    }
    tools::KernelHostOptions options;
    options.program = host_program;
    options.library = built.library;
    options.buffers = oracle_buffers(layout);
    host_ = std::make_unique<tools::KernelHost>(thread, std::move(options));
}

std::vector<OutputRule> CasePool::rules(const KernelCase& kernel_case) const {
    std::vector<OutputRule> rules;
    for (const tools::KernelArgument& argument : layout_->arguments()) {
        if (argument.role == Role::input) continue;
        const double row = tools::evaluate_expression(task_->tolerance.row, kernel_case.sizes);
        rules.push_back({argument.type, task_->tolerance.exact, static_cast<std::size_t>(row)});
    }
    return rules;
}

void CasePool::call(const KernelCase& kernel_case, std::int64_t operation, std::uint64_t seed) {
    const std::span<std::byte> name = host_->buffer(0);
    if (kernel_case.distribution.size() + 1 > kDistributionBytes) {
        throw std::runtime_error(
            fmt::format("case {}: the distribution's name is too long", kernel_case.name));
    }
    std::memcpy(name.data(), kernel_case.distribution.c_str(), kernel_case.distribution.size() + 1);
    tools::HostCall request;
    request.offsets.assign(oracle_buffers(*layout_).size(), 0);
    request.bytes.assign(request.offsets.size(), 0);  // nothing to bring into a cache
    request.sizes = {operation, static_cast<std::int64_t>(seed)};
    for (const std::string& axis : task_->axes) request.sizes.push_back(kernel_case.sizes.at(axis));
    request.timeout = kOracleTimeout;
    host_->call(request);
    host_->audit();
}

InputSet CasePool::generate(const KernelCase& kernel_case, std::uint64_t seed) {
    call(kernel_case, kGenerate, seed);
    InputSet set;
    const std::vector<std::uint64_t> bytes = layout_->bytes_of(kernel_case);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (layout_->arguments()[i].role == Role::output) continue;
        const auto memory = host_->buffer(1 + set.inputs.size()).first(bytes[i]);
        set.inputs.emplace_back(memory.begin(), memory.end());
    }
    ask_oracle(kernel_case, set);
    return set;
}

void CasePool::ask_oracle(const KernelCase& kernel_case, InputSet& set) {
    for (std::size_t i = 0; i < set.inputs.size(); ++i) {
        std::copy(set.inputs[i].begin(), set.inputs[i].end(), host_->buffer(1 + i).begin());
    }
    const auto& arguments = layout_->arguments();
    const std::vector<std::uint64_t> bytes = layout_->bytes_of(kernel_case);
    call(kernel_case, kReference, 0);
    set.expected.clear();
    std::size_t buffer = 1 + set.inputs.size();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role == Role::input) continue;
        const std::size_t size =
            bytes[i] / tools::element_bytes(arguments[i].type) * oracle_bytes(arguments[i].type);
        const auto memory = host_->buffer(buffer++).first(size);
        set.expected.emplace_back(memory.begin(), memory.end());
    }
}

namespace {

/// Replaces one element by another one of the same buffer, so that it stays in the domain; where
/// all are equal a floating-point one is halved. False when nothing changed.
bool change_element(Bytes& bytes, tools::ElementType type, std::mt19937_64& random) {
    const std::size_t width = tools::element_bytes(type);
    const std::size_t n = bytes.size() / width;
    if (n == 0) return false;
    std::byte* at = bytes.data() + random() % n * width;
    constexpr int kTries = 16;
    for (int i = 0; i < kTries; ++i) {
        const std::byte* other = bytes.data() + random() % n * width;
        if (std::memcmp(at, other, width) == 0) continue;
        std::memcpy(at, other, width);
        return true;
    }
    if (type != tools::ElementType::f32) return false;
    float value;
    std::memcpy(&value, at, sizeof value);
    value = value == 0 ? 1 : value / 2;
    std::memcpy(at, &value, sizeof value);
    return true;
}

/// Largest difference between two oracle results, in units of the row scale of the first.
double distance(const OutputRule& rule, const Bytes& first, const Bytes& second) {
    OutputRule as_oracle = rule;
    if (oracle_is_double(rule.type)) as_oracle.type = tools::ElementType::f64;
    return scaled_error(as_oracle, second, first);
}

}  // namespace

InputSet CasePool::variant_of(const KernelCase& kernel_case, const InputSet& base,
                              std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<tools::ElementType> types;
    for (const tools::KernelArgument& argument : layout_->arguments()) {
        if (argument.role != Role::output) types.push_back(argument.type);
    }
    const std::vector<OutputRule> output_rules = rules(kernel_case);
    constexpr int kTries = 8;
    for (int i = 0; i < kTries; ++i) {
        InputSet variant;
        variant.inputs = base.inputs;
        const std::size_t input = random() % variant.inputs.size();
        if (!change_element(variant.inputs[input], types[input], random)) continue;
        ask_oracle(kernel_case, variant);
        for (std::size_t out = 0; out < variant.expected.size(); ++out) {
            const double moved =
                distance(output_rules[out], base.expected[out], variant.expected[out]);
            if (moved > 4 * base.allowed) return variant;
        }
    }
    // No single element shows in the result (as in a constant softmax row): other inputs will.
    return generate(kernel_case, seed);
}

void CasePool::measure_noise(const KernelCase& kernel_case, InputSet& set, KernelArm& anchor,
                             std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Placement placement = layout_->draw(kernel_case, random);
    anchor.call(kernel_case, set, placement, kOracleTimeout);
    const std::vector<OutputRule> output_rules = rules(kernel_case);
    const Tolerance& tolerance = task_->tolerance;
    const double k = tools::evaluate_expression(tolerance.k, kernel_case.sizes);
    for (std::size_t i = 0; i < output_rules.size(); ++i) {
        set.noise = std::max(set.noise,
                             scaled_error(output_rules[i], anchor.outputs()[i], set.expected[i]));
        if (tolerance.exact) continue;
        const double rounding = tolerance.c * epsilon_of(output_rules[i].type) * std::sqrt(k);
        set.allowed = std::max(set.allowed, rounding);
    }
    if (set.noise > (tolerance.exact ? 0 : kSaneNoise)) {
        throw std::runtime_error(
            fmt::format("task {}, case {}: the anchor is {} off its own oracle", task_->id,
                        kernel_case.name, set.noise));
    }
    if (!tolerance.exact) set.allowed = std::max(set.allowed, tolerance.noise_factor * set.noise);
}

const std::vector<InputSet>& CasePool::sets(const KernelCase& kernel_case, std::size_t count,
                                            KernelArm& anchor) {
    std::vector<InputSet>& sets = sets_[kernel_case.name];
    while (sets.size() < count) {
        const std::uint64_t seed =
            derive_seed(secret_, task_->id + "/" + kernel_case.name, sets.size());
        sets.push_back(sets.size() % 2 == 0 ? generate(kernel_case, seed)
                                            : variant_of(kernel_case, sets.back(), seed));
        measure_noise(kernel_case, sets.back(), anchor, seed);
    }
    return sets;
}

}  // namespace skein::harnesses
