// The data of every task and a sample of every move space against the oracles.

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>

#include "harnesses/kernel_opt/move_space.h"
#include "harnesses/kernel_opt/task.h"
#include "tests/harnesses/kernel_opt/kernel_check.h"
#include "tests/harnesses/kernel_opt/points.h"

using namespace skein::harnesses;
using skein::testing::CallBuffers;
using skein::testing::every_legal_point;
using skein::testing::LoadedKernel;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kSeed = 20261130;

std::string read_text(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<KernelCase> all_cases(const KernelTask& task) {
    std::vector<KernelCase> cases = task.visible;
    cases.insert(cases.end(), task.hidden.begin(), task.hidden.end());
    return cases;
}

/// A task with its oracle, generator and anchor built.
struct Bench {
    explicit Bench(const KernelTask& t)
        : task(t),
          generator(scratch.path(), read_text(task.directory / "gen.cc"), {"-O2"}),
          reference(scratch.path(), read_text(task.directory / "reference.cc"), {"-O2"}),
          anchor(scratch.path(), task.anchor_source, task.flags) {}

    /// What is wrong with the kernel on any case, or with one size at 0; nothing when it is right.
    std::string fault_of(const LoadedKernel& kernel) {
        std::vector<KernelCase> cases = all_cases(task);
        for (const std::string& axis : task.axes) {
            KernelCase empty = task.visible.at(1);
            empty.name = axis + " = 0";
            empty.sizes[axis] = 0;
            cases.push_back(empty);
        }
        for (const KernelCase& entry : cases) {
            CallBuffers buffers(task, entry, generator, kSeed);
            buffers.call(anchor);
            const double noise = buffers.scaled_error(reference);
            buffers.call(kernel);
            const std::string fault = buffers.verify(reference, noise);
            if (!fault.empty()) return entry.name + ": " + fault;
        }
        return {};
    }

    std::string fault_of(const std::string& source, const std::vector<std::string>& more_flags) {
        std::vector<std::string> flags = task.flags;
        flags.insert(flags.end(), more_flags.begin(), more_flags.end());
        try {
            return fault_of(LoadedKernel(scratch.path(), source, flags));
        } catch (const std::runtime_error& error) {
            return error.what();
        }
    }

    skein::testing::ScratchDirectory scratch;
    const KernelTask& task;
    LoadedKernel generator, reference, anchor;
};

/// A kernel that writes `value` to every output element and does nothing else.
std::string constant_kernel(const KernelTask& task, const std::string& value) {
    std::string parameters, body;
    for (const skein::tools::KernelArgument& argument : task.signature.arguments) {
        using Role = skein::tools::KernelArgument::Role;
        const std::string type = argument.type == skein::tools::ElementType::f32   ? "float"
                                 : argument.type == skein::tools::ElementType::u32 ? "std::uint32_t"
                                 : argument.type == skein::tools::ElementType::u8  ? "std::uint8_t"
                                                                                   : "std::int32_t";
        if (!parameters.empty()) parameters += ", ";
        parameters += "[[maybe_unused]] ";
        if (argument.role == Role::size) {
            parameters += "std::int64_t " + argument.name;
        } else if (argument.role == Role::input) {
            parameters += "const " + type + "* " + argument.name;
        } else {
            parameters += type + "* " + argument.name;
            body += "for (std::int64_t i = 0; i < " + argument.count + "; ++i) " + argument.name +
                    "[i] = static_cast<" + type + ">(" + value + ");";
        }
    }
    return "#include <cstdint>\nextern \"C\" void " + task.signature.entry + "(" + parameters +
           ") {" + body + "}\n";
}

void check_kernels(const char* id) {
    const KernelTask task = load_task(tasks_root() / id);
    Bench bench(task);
    CHECK(bench.fault_of(bench.anchor) == "");
    CHECK(bench.fault_of(read_text(task.directory / "hidden" / "known_good.cc"), {}) == "");
    for (const char* value : {"0", "1"}) {
        CAPTURE(value);
        CHECK(bench.fault_of(constant_kernel(task, value), {"-O1"}) != "");
    }
    MESSAGE("seed ", kSeed);
    const KernelGenerator& space = *find_generator(id);
    std::vector<Configuration> points = every_legal_point(space);
    std::mt19937_64 random(kSeed);
    std::shuffle(points.begin(), points.end(), random);
    points.resize(3);
    points.emplace_back(points.front().size(), 0);
    for (const Configuration& point : points) {
        CAPTURE(describe(space, point));
        CHECK(bench.fault_of(space.source(point), space.flags(point)) == "");
    }
}

}  // namespace

TEST_SUITE("harnesses/kernel_opt/tasks") {
    TEST_CASE("every task covers size 1, tails and several distributions beside one timed shape") {
        for (const KernelTask& task : load_tasks(tasks_root())) {
            CAPTURE(task.id);
            std::set<std::string> distributions;
            bool one = false, odd = false;
            int timed = 0;
            for (const KernelCase& entry : all_cases(task)) {
                distributions.insert(entry.distribution);
                timed += entry.timed ? 1 : 0;
                const auto& sizes = entry.sizes;
                one = one || std::all_of(sizes.begin(), sizes.end(),
                                         [](const auto& size) { return size.second == 1; });
                odd = odd || std::all_of(sizes.begin(), sizes.end(), [](const auto& size) {
                          return size.second > 4 && size.second % 2 == 1;
                      });
            }
            CHECK(one);
            CHECK(odd);
            CHECK(timed == 1);
            CHECK(distributions.size() >= 4);
            CHECK(task.hidden.size() >= 4);
        }
    }

    TEST_CASE("flags of the move spaces are allowed by their tasks") {
        for (const KernelTask& task : load_tasks(tasks_root())) {
            CAPTURE(task.id);
            const KernelGenerator& space = *find_generator(task.id);
            for (const Configuration& point : every_legal_point(space)) {
                for (const std::string& flag : space.flags(point)) {
                    const auto& allowed = task.allowed_flags;
                    if (std::find(allowed.begin(), allowed.end(), flag) != allowed.end()) continue;
                    FAIL_CHECK(flag);
                }
            }
        }
    }

    TEST_CASE("sources are plain text with their choices on top, and the same every time") {
        for (const KernelGenerator* space : all_generators()) {
            CAPTURE(space->task_id());
            std::set<std::string> sources;
            const std::vector<Configuration> points = every_legal_point(*space);
            for (const Configuration& point : points) {
                const std::string source = space->source(point);
                sources.insert(source);
                const bool plain = source.find('@') == std::string::npos &&
                                   source.find("written out from these choices") < 100;
                if (plain && source == space->source(point)) continue;
                FAIL_CHECK(describe(*space, point));
            }
            CHECK(sources.size() == points.size());
        }
    }

    TEST_CASE("inputs differ with the seed and repeat with it") {
        for (const KernelTask& task : load_tasks(tasks_root())) {
            CAPTURE(task.id);
            const skein::testing::ScratchDirectory scratch;
            const LoadedKernel generator(scratch.path(), read_text(task.directory / "gen.cc"),
                                         {"-O2"});
            for (const KernelCase& entry : all_cases(task)) {
                if (entry.timed || entry.distribution == "ascending") continue;
                CAPTURE(entry.name);
                const CallBuffers first(task, entry, generator, 1);
                CHECK(first.same_inputs(CallBuffers(task, entry, generator, 1)));
                CHECK_FALSE(first.same_inputs(CallBuffers(task, entry, generator, 2)));
            }
        }
    }

    TEST_CASE(
        "conv3x3: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("conv3x3");
    }
    TEST_CASE(
        "histogram: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("histogram");
    }
    TEST_CASE(
        "rmsnorm: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("rmsnorm");
    }
    TEST_CASE("scan: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("scan");
    }
    TEST_CASE("sgemm: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("sgemm");
    }
    TEST_CASE("sgemv: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("sgemv");
    }
    TEST_CASE(
        "softmax: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("softmax");
    }
    TEST_CASE(
        "transpose: anchor, known good kernel and sampled points are right, constants are not") {
        check_kernels("transpose");
    }
}
