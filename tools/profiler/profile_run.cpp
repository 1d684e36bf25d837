#include "tools/profiler/profile_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tools/profiler/kernel_host.h"
#include "tools/profiler/program_path.h"

namespace skein::tools {
namespace {

using Role = KernelArgument::Role;

constexpr double kShortestSampleNs = 100e3;  ///< shorter calls are repeated within a sample
constexpr int kMinPairs = 5;
constexpr std::size_t kMaxRemarks = 6;

struct Buffers {
    std::vector<KernelArgument> arguments;
    std::vector<std::uint64_t> bytes;
    std::uint64_t total = 0;
};

Buffers buffers_of(const ProfileRequest& request, std::uint64_t most) {
    Buffers buffers;
    for (const KernelArgument& argument : request.signature.arguments) {
        if (argument.role == Role::size) continue;
        const double count = evaluate_expression(argument.count, request.sizes);
        const double bytes = count * static_cast<double>(element_bytes(argument.type));
        if (count < 0 || static_cast<double>(buffers.total) + bytes > static_cast<double>(most)) {
            throw ProfileFailure(
                fmt::format("the buffers need more than {} bytes at these sizes, or a negative "
                            "number: `{}` has {:.0f} elements",
                            most, argument.name, count));
        }
        buffers.arguments.push_back(argument);
        buffers.bytes.push_back(static_cast<std::uint64_t>(bytes));
        buffers.total += buffers.bytes.back();
    }
    return buffers;
}

template <class T>
void fill_as(std::span<std::byte> memory, std::mt19937_64& random, T low, double span) {
    for (std::size_t i = 0; i + sizeof(T) <= memory.size(); i += sizeof(T)) {
        const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
        const T value = static_cast<T>(static_cast<double>(low) + unit * span);
        std::memcpy(memory.data() + i, &value, sizeof value);
    }
}

/// Floats in [-1, 1), integers in [0, 100).
void fill_random(std::span<std::byte> memory, ElementType type, std::mt19937_64& random) {
    switch (type) {
        case ElementType::f32: return fill_as<float>(memory, random, -1, 2);
        case ElementType::f64: return fill_as<double>(memory, random, -1, 2);
        case ElementType::i8: return fill_as<std::int8_t>(memory, random, 0, 100);
        case ElementType::u8: return fill_as<std::uint8_t>(memory, random, 0, 100);
        case ElementType::i32: return fill_as<std::int32_t>(memory, random, 0, 100);
        case ElementType::u32: return fill_as<std::uint32_t>(memory, random, 0, 100);
        case ElementType::i64: return fill_as<std::int64_t>(memory, random, 0, 100);
    }
}

/// One built kernel in its process, with a call that gets fresh inputs.
class Subject {
  public:
    Subject(const ProfileRequest& request, const Buffers& buffers, const BuildResult& built,
            const KernelProfileOptions& options, SandboxThread& thread)
        : buffers_(&buffers) {
        KernelHostOptions host_options;
        host_options.program = options.host_program.empty() ? helper_program("skein-kernel-host")
                                                            : options.host_program;
        host_options.library = built.library;
        for (std::size_t i = 0; i < buffers.bytes.size(); ++i) {
            host_options.buffers.push_back(
                {buffers.bytes[i], buffers.arguments[i].role != Role::input});
        }
        call_.offsets.assign(buffers.bytes.size(), 0);
        call_.bytes = buffers.bytes;
        for (const KernelArgument& argument : request.signature.arguments) {
            if (argument.role == Role::size) call_.sizes.push_back(request.sizes.at(argument.name));
        }
        call_.timeout = options.call_timeout;
        host_ = std::make_unique<KernelHost>(thread, std::move(host_options));
    }

    /// Nanoseconds of one of `repeat` calls on inputs drawn from `seed`.
    double call(std::uint64_t seed, std::uint32_t repeat) {
        std::mt19937_64 random(seed);
        for (std::size_t i = 0; i < buffers_->bytes.size(); ++i) {
            if (buffers_->arguments[i].role == Role::output) continue;
            fill_random(host_->buffer(i).first(buffers_->bytes[i]), buffers_->arguments[i].type,
                        random);
        }
        call_.repeat = repeat;
        const double ns = host_->call(call_) / std::max(1U, repeat);
        host_->audit();
        return ns;
    }

    std::span<std::byte> buffer(std::size_t index) {
        return host_->buffer(index).first(buffers_->bytes[index]);
    }

  private:
    const Buffers* buffers_;
    HostCall call_;
    std::unique_ptr<KernelHost> host_;
};

template <class T>
double difference_as(std::span<const std::byte> first, std::span<const std::byte> second) {
    double squares = 0, worst = 0;
    const std::size_t n = first.size() / sizeof(T);
    for (std::size_t i = 0; i < n; ++i) {
        T a, b;
        std::memcpy(&a, first.data() + i * sizeof(T), sizeof a);
        std::memcpy(&b, second.data() + i * sizeof(T), sizeof b);
        const double wanted = static_cast<double>(b);
        squares += wanted * wanted;
        worst = std::max(worst, std::abs(static_cast<double>(a) - wanted));
    }
    if (worst == 0) return 0;
    return worst / std::sqrt(squares / static_cast<double>(n));
}

double difference(ElementType type, std::span<const std::byte> first,
                  std::span<const std::byte> second) {
    switch (type) {
        case ElementType::f32: return difference_as<float>(first, second);
        case ElementType::f64: return difference_as<double>(first, second);
        default: return std::equal(first.begin(), first.end(), second.begin()) ? 0 : INFINITY;
    }
}

BuildRequest build_request(const ProfileRequest& request, const std::string& source) {
    BuildRequest build;
    build.files = {{"kernel.cc", source}, make_entry_shim(request.signature)};
    build.flags = request.flags;
    return build;
}

BuildResult build_or_throw(KernelBuilder& builder, const ProfileRequest& request,
                           const std::string& name, const std::string& source) {
    BuildResult built = builder.build(build_request(request, source));
    if (!built.ok) {
        throw ProfileFailure(fmt::format("{} does not compile:\n{}", name, built.diagnostics));
    }
    return built;
}

void explain(Profile& profile, const ProfileRequest& request, const BuildResult& built,
             KernelBuilder& builder) {
    const std::string disassembly = builder.inspect(
        built, {"objdump", "-d", "--no-show-raw-insn", "-M", "intel", "kernel.so"});
    profile.loop = find_hot_loop(disassembly, request.signature.entry);
    std::vector<std::string> argv{builder.compiler(), "-std=c++20"};
    argv.insert(argv.end(), request.flags.begin(), request.flags.end());
    argv.insert(argv.end(), {"-fopt-info-vec-optimized-missed", "-c", "kernel.cc", "-o",
                             "/tmp/remarks.o"});
    profile.remarks = vectoriser_remarks(builder.inspect(built, argv), "kernel.cc", kMaxRemarks);
}

void set_limits(Profile& profile, const ProfileRequest& request, const Buffers& buffers,
                double hand_over_ns) {
    const double working_set = static_cast<double>(buffers.total);
    profile.flops = request.flops.empty() ? 0 : evaluate_expression(request.flops, request.sizes);
    profile.bytes =
        request.bytes.empty() ? working_set : evaluate_expression(request.bytes, request.sizes);
    const MachineRoof& roof = machine_roof();
    const KernelLimit memory = kernel_limit(roof, 0, profile.bytes, working_set);
    profile.limit = kernel_limit(roof, profile.flops, profile.bytes, working_set);
    profile.roofline.median_ns = profile.median_ns;
    profile.roofline.memory_ns = memory.ns;
    profile.roofline.memory_level = memory.bound;
    profile.roofline.arithmetic_ns = roof.fma_flops > 0 ? profile.flops / roof.fma_flops * 1e9 : 0;
    profile.roofline.hand_over_ns = hand_over_ns;
}

/// How the outputs of the last call of both differ at worst.
double compare_outputs(const Buffers& buffers, Subject& candidate, Subject& baseline) {
    double worst = 0;
    for (std::size_t i = 0; i < buffers.arguments.size(); ++i) {
        if (buffers.arguments[i].role == Role::input) continue;
        worst = std::max(worst, difference(buffers.arguments[i].type, candidate.buffer(i),
                                           baseline.buffer(i)));
    }
    return worst;
}

void measure(Profile& profile, const ProfileRequest& request, const Buffers& buffers,
             const BuildResult& built, const KernelProfileOptions& options, SandboxThread& thread,
             KernelBuilder& builder) {
    constexpr std::uint64_t kSeed = 1;
    Subject candidate(request, buffers, built, options, thread);
    candidate.call(kSeed, 1);  // faults its pages in
    const double once = candidate.call(kSeed + 1, 1);
    const double hand_over = std::min(candidate.call(kSeed, 0), candidate.call(kSeed, 0));
    const double repeats = std::ceil(kShortestSampleNs / std::max(once, 1.0));
    profile.repeat = static_cast<std::uint32_t>(std::clamp(repeats, 1.0, 1e6));

    PairOptions pairs;
    pairs.pairs = options.pairs;
    pairs.min_pairs = std::min(kMinPairs, options.pairs);
    pairs.budget = options.budget;
    const auto timed = [&](Subject& subject) {
        return [&subject, &profile](int index) {
            return subject.call(static_cast<std::uint64_t>(100 + index), profile.repeat);
        };
    };
    PairedSamples samples;
    if (request.baseline.empty()) {
        samples = measure_pairs([](int) { return 1.0; }, timed(candidate), pairs);
    } else {
        const BuildResult other =
            build_or_throw(builder, request, request.baseline_name, request.baseline);
        Subject baseline(request, buffers, other, options, thread);
        baseline.call(kSeed, 1);
        candidate.call(kSeed, 1);
        profile.output_difference = compare_outputs(buffers, candidate, baseline);
        samples = measure_pairs(timed(baseline), timed(candidate), pairs);
        profile.speed = estimate_speedup(samples, kSeed);
        profile.baseline_ns = median(samples.baseline_ns);
    }
    std::vector<double>& times = samples.candidate_ns;
    std::sort(times.begin(), times.end());
    profile.samples = times.size();
    profile.median_ns = median(times);
    profile.low_ns = times[times.size() / 4];
    profile.high_ns = times[times.size() * 3 / 4];
    set_limits(profile, request, buffers, hand_over / profile.repeat);
}

}  // namespace

Profile run_profile(const ProfileRequest& request, const KernelProfileOptions& options,
                    SandboxThread& thread, KernelBuilder& builder) {
    const Buffers buffers = buffers_of(request, options.max_buffer_bytes);
    const BuildResult built = build_or_throw(builder, request, request.source_name, request.source);
    Profile profile;
    try {
        measure(profile, request, buffers, built, options, thread, builder);
    } catch (const HostFailure& failure) {
        if (failure.kind == HostFailure::Kind::infrastructure) throw;
        const char* where = failure.fault == host::Fault::guard         ? " (outside of a buffer)"
                            : failure.fault == host::Fault::input_write ? " (a write to an input)"
                                                                        : "";
        throw ProfileFailure(failure.what() + std::string(where));
    }
    explain(profile, request, built, builder);
    profile.verdict = roofline_verdict(profile.roofline, profile.loop);
    profile.hints = hints_for(profile.roofline, profile.loop, profile.remarks);
    return profile;
}

}  // namespace skein::tools
