#include "harnesses/kernel_opt/kernel_arm.h"

#include <algorithm>
#include <cstring>

namespace skein::harnesses {
namespace {

using Role = tools::KernelArgument::Role;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kMargin = 256;  ///< poisoned and checked on both sides of an output
constexpr std::uint64_t kRoom = 32768;  ///< how far a buffer moves between calls
constexpr int kSpoiledBytes = 8;

std::uint64_t round_up(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void poison_bytes(std::span<std::byte> bytes, std::uint32_t pattern) {
    // The pattern is laid from the start of the buffer, which is aligned like its elements.
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        std::memcpy(bytes.data() + i, &pattern, sizeof pattern);
    }
    for (std::size_t i = bytes.size() / 4 * 4; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(pattern >> (8 * (i % 4)));
    }
}

bool is_poisoned(std::span<const std::byte> bytes, std::uint32_t pattern, std::size_t phase) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != static_cast<std::byte>(pattern >> (8 * ((i + phase) % 4)))) return false;
    }
    return true;
}

/// The output and what lies around it, as far as the buffer reaches.
struct Surroundings {
    std::uint64_t begin, end;
};
Surroundings around(std::uint64_t offset, std::uint64_t bytes, std::uint64_t capacity) {
    return {offset - std::min(offset, kMargin), std::min(capacity, offset + bytes + kMargin)};
}

}  // namespace

ArmLayout::ArmLayout(const KernelTask& task) : task_(&task) {
    for (const tools::KernelArgument& argument : task.signature.arguments) {
        if (argument.role == Role::size) continue;
        std::uint64_t largest = 0;
        for (const auto* cases : {&task.visible, &task.hidden}) {
            for (const KernelCase& kernel_case : *cases) {
                const double count = tools::evaluate_expression(argument.count, kernel_case.sizes);
                largest = std::max(largest, static_cast<std::uint64_t>(count) *
                                                tools::element_bytes(argument.type));
            }
        }
        arguments_.push_back(argument);
        const std::uint64_t page = tools::host::kPageBytes;
        capacities_.push_back((round_up(largest) + kRoom + 2 * kMargin + page - 1) / page * page);
    }
}

std::vector<tools::HostBuffer> ArmLayout::host_buffers() const {
    std::vector<tools::HostBuffer> buffers;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
        buffers.push_back({capacities_[i], arguments_[i].role != Role::input});
    }
    return buffers;
}

std::vector<std::uint64_t> ArmLayout::bytes_of(const KernelCase& kernel_case) const {
    std::vector<std::uint64_t> bytes;
    for (const tools::KernelArgument& argument : arguments_) {
        const double count = tools::evaluate_expression(argument.count, kernel_case.sizes);
        bytes.push_back(static_cast<std::uint64_t>(count) * tools::element_bytes(argument.type));
    }
    return bytes;
}

std::vector<std::int64_t> ArmLayout::sizes_of(const KernelCase& kernel_case) const {
    std::vector<std::int64_t> sizes;
    for (const tools::KernelArgument& argument : task_->signature.arguments) {
        if (argument.role == Role::size) sizes.push_back(kernel_case.sizes.at(argument.name));
    }
    return sizes;
}

Placement ArmLayout::draw(const KernelCase& kernel_case, std::mt19937_64& random) const {
    const std::vector<std::uint64_t> bytes = bytes_of(kernel_case);
    Placement placement;
    placement.poison = 0x7ff80000U | static_cast<std::uint32_t>(random() & 0xffff);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        // One in four ends where the mapping ends, so that reading past it faults.
        const bool flush = random() % 4 == 0;
        const std::uint64_t steps = kRoom / kAlignment;
        placement.offsets.push_back(flush ? capacities_[i] - round_up(bytes[i])
                                          : kMargin + random() % steps * kAlignment);
    }
    return placement;
}

KernelArm::KernelArm(tools::SandboxThread& thread, const ArmLayout& layout,
                     std::filesystem::path host_program, std::filesystem::path library,
                     std::uint64_t seed)
    : layout_(&layout),
      host_(thread,
            [&] {
                tools::KernelHostOptions options;
                options.program = std::move(host_program);
                options.library = std::move(library);
                options.buffers = layout.host_buffers();
                return options;
            }()),
      random_(seed) {}

void KernelArm::fill(const InputSet& set, const Placement& placement) {
    std::size_t input = 0;
    const auto& arguments = layout_->arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::span<std::byte> memory = host_.buffer(i);
        if (arguments[i].role != Role::output) {
            const Bytes& bytes = set.inputs[input++];
            std::memcpy(memory.data() + placement.offsets[i], bytes.data(), bytes.size());
        }
    }
}

/// Until the clock runs, a few bytes of the inputs are wrong: work begun early computes with them.
void KernelArm::spoil_inputs(const InputSet& set, const Placement& placement) {
    spoiled_.clear();
    std::size_t input = 0;
    const auto& arguments = layout_->arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role == Role::output) continue;
        const Bytes& bytes = set.inputs[input++];
        for (int n = 0; n < kSpoiledBytes && !bytes.empty(); ++n) {
            const std::size_t index = random_() % bytes.size();
            std::byte* at = host_.buffer(i).data() + placement.offsets[i] + index;
            spoiled_.push_back({at, bytes[index]});
            *at = bytes[index] ^ std::byte{0x55};
        }
    }
}

void KernelArm::restore_inputs() {
    for (const Spoiled& byte : spoiled_) *byte.at = byte.value;
}

ArmCall KernelArm::call(const KernelCase& kernel_case, const InputSet& set,
                        const Placement& placement, std::chrono::milliseconds timeout,
                        std::uint32_t repeat) {
    const auto& arguments = layout_->arguments();
    tools::HostCall request;
    request.offsets = placement.offsets;
    request.bytes = layout_->bytes_of(kernel_case);
    request.sizes = layout_->sizes_of(kernel_case);
    request.repeat = repeat;
    request.timeout = timeout;
    request.before_start = [this] { restore_inputs(); };
    outputs_.resize(set.expected.size());
    std::size_t output = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role == Role::input) continue;
        outputs_[output++].resize(request.bytes[i]);  // here, so that no page fault delays the copy
        const std::span<std::byte> memory = host_.buffer(i);
        const auto [begin, end] = around(placement.offsets[i], request.bytes[i], memory.size());
        poison_bytes(memory.subspan(begin, end - begin), placement.poison);
    }
    fill(set, placement);
    spoil_inputs(set, placement);

    ArmCall result;
    result.ns = host_.call(request);
    output = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role == Role::input) continue;
        Bytes& copy = outputs_[output++];
        std::memcpy(copy.data(), host_.buffer(i).data() + placement.offsets[i], copy.size());
    }
    result.audit = host_.audit();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role == Role::input) continue;
        const std::span<const std::byte> memory = host_.buffer(i);
        const std::uint64_t offset = placement.offsets[i], bytes = request.bytes[i];
        const auto [begin, end] = around(offset, bytes, memory.size());
        const std::uint64_t after = offset + bytes;
        if (!is_poisoned(memory.subspan(begin, offset - begin), placement.poison, 0) ||
            !is_poisoned(memory.subspan(after, end - after), placement.poison, after - begin)) {
            result.overrun = i;
        }
    }
    return result;
}

}  // namespace skein::harnesses
