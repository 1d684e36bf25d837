#include "tests/harnesses/kernel_opt/kernel_check.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace skein::testing {

namespace fs = std::filesystem;
using tools::ElementType;
using Role = tools::KernelArgument::Role;

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xa7;
constexpr unsigned char kPoison = 0xff;  // a NaN in every float, a large number in integers

std::string read_text(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Pointers and 64-bit integers travel alike in registers and on the stack of x86-64 and AArch64, so
// one function type calls every kernel.
void call_with(void* function, std::vector<std::uint64_t> a) {
    using Function = void (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                              std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
    if (a.size() > 8) throw std::runtime_error("kernels with more than 8 arguments are not called");
    a.resize(8);
    reinterpret_cast<Function>(function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

double element(const unsigned char* data, std::size_t index, ElementType type) {
    const auto read = [&]<typename T>(T) {
        T value;
        std::memcpy(&value, data + index * sizeof(T), sizeof(T));
        return static_cast<double>(value);
    };
    switch (type) {
        case ElementType::f32:
            return read(float{});
        case ElementType::f64:
            return read(double{});
        case ElementType::i8:
            return read(std::int8_t{});
        case ElementType::u8:
            return read(std::uint8_t{});
        case ElementType::i32:
            return read(std::int32_t{});
        case ElementType::u32:
            return read(std::uint32_t{});
        case ElementType::i64:
            return read(std::int64_t{});
    }
    return std::numeric_limits<double>::quiet_NaN();
}

// Processor time, so that other programs disturb less.
double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

ElementType oracle_type(ElementType type) {
    return type == ElementType::f32 ? ElementType::f64 : type;
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
    std::string pattern = (fs::temp_directory_path() / "skein-kernels-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

LoadedKernel::LoadedKernel(const fs::path& scratch, const std::string& source,
                           const std::vector<std::string>& flags) {
    static std::atomic<int> counter{0};
    const fs::path base = scratch / fmt::format("kernel_{}", counter++);
    const std::string file = base.string() + ".cc", object = base.string() + ".so";
    const std::string messages = base.string() + ".txt";
    std::ofstream(file) << source;
    const std::string command =
        fmt::format("g++ -std=c++20 {} -Wall -Wextra -shared -fPIC -o '{}' '{}' > '{}' 2>&1",
                    fmt::join(flags, " "), object, file, messages);
    const int status = std::system(command.c_str());
    const std::string said = read_text(messages);
    if (status != 0 || !said.empty()) {
        throw std::runtime_error(fmt::format("{}\n{}", command, said));
    }
    handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
}

LoadedKernel::~LoadedKernel() {
    if (handle_ != nullptr) dlclose(handle_);
}

void* LoadedKernel::symbol(const std::string& name) const {
    void* found = dlsym(handle_, name.c_str());
    if (found == nullptr) throw std::runtime_error(fmt::format("no symbol '{}'", name));
    return found;
}

CallBuffers::CallBuffers(const harnesses::KernelTask& task, const harnesses::KernelCase& entry,
                         const LoadedKernel& generator, std::uint64_t seed)
    : task_(task), case_(entry), buffers_(task.signature.arguments.size()) {
    std::vector<void*> inputs;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const tools::KernelArgument& argument = task.signature.arguments[i];
        if (argument.role == Role::size) continue;
        Buffer& buffer = buffers_[i];
        buffer.count =
            static_cast<std::size_t>(tools::evaluate_expression(argument.count, entry.sizes));
        buffer.bytes = buffer.count * tools::element_bytes(argument.type);
        buffer.storage.assign(buffer.bytes + 2 * kGuardBytes + 64, kGuard);
        const auto start = reinterpret_cast<std::uintptr_t>(buffer.storage.data()) + kGuardBytes;
        buffer.data = reinterpret_cast<unsigned char*>((start + 63) / 64 * 64);
        if (argument.role != Role::output) inputs.push_back(buffer.data);
    }
    std::vector<std::int64_t> sizes;
    for (const std::string& axis : task.axes) sizes.push_back(entry.sizes.at(axis));
    using Generate = void (*)(const std::int64_t*, std::uint64_t, const char*, void* const*);
    reinterpret_cast<Generate>(generator.symbol("skein_generate"))(
        sizes.data(), seed, entry.distribution.c_str(), inputs.data());
    for (Buffer& buffer : buffers_) buffer.original = buffer.storage;
}

bool CallBuffers::same_inputs(const CallBuffers& other) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const Role role = task_.signature.arguments[i].role;
        if (role == Role::size || role == Role::output) continue;
        const Buffer &mine = buffers_[i], &theirs = other.buffers_.at(i);
        if (mine.bytes != theirs.bytes) return false;
        if (!std::equal(mine.data, mine.data + mine.bytes, theirs.data)) return false;
    }
    return true;
}

void CallBuffers::poison() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        Buffer& buffer = buffers_[i];
        buffer.storage = buffer.original;
        if (task_.signature.arguments[i].role == Role::output) {
            std::fill_n(buffer.data, buffer.bytes, kPoison);
        }
    }
}

void CallBuffers::call(const LoadedKernel& kernel) {
    poison();
    seconds_per_call(kernel, 1);
}

double CallBuffers::seconds_per_call(const LoadedKernel& kernel, int calls) {
    std::vector<std::uint64_t> arguments;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const tools::KernelArgument& argument = task_.signature.arguments[i];
        arguments.push_back(argument.role == Role::size
                                ? static_cast<std::uint64_t>(case_.sizes.at(argument.name))
                                : reinterpret_cast<std::uint64_t>(buffers_[i].data));
    }
    void* entry = kernel.symbol(task_.signature.entry);
    const double start = thread_seconds();
    for (int i = 0; i < calls; ++i) call_with(entry, arguments);
    return (thread_seconds() - start) / calls;
}

CallBuffers::Errors CallBuffers::compare(const LoadedKernel& reference) {
    std::vector<std::int64_t> sizes;
    for (const std::string& axis : task_.axes) sizes.push_back(case_.sizes.at(axis));
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<std::vector<unsigned char>> wanted(buffers_.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const tools::KernelArgument& argument = task_.signature.arguments[i];
        if (argument.role == Role::input) inputs.push_back(buffers_[i].data);
        if (argument.role != Role::output) continue;
        wanted[i].resize(buffers_[i].count * tools::element_bytes(oracle_type(argument.type)) + 1);
        outputs.push_back(wanted[i].data());
    }
    using Reference = void (*)(const std::int64_t*, const void* const*, void* const*);
    reinterpret_cast<Reference>(reference.symbol("skein_reference"))(sizes.data(), inputs.data(),
                                                                     outputs.data());
    Errors errors;
    const auto row = static_cast<std::size_t>(
        std::max(1.0, tools::evaluate_expression(task_.tolerance.row, case_.sizes)));
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const tools::KernelArgument& argument = task_.signature.arguments[i];
        const Buffer& buffer = buffers_[i];
        const auto offset = static_cast<std::size_t>(buffer.data - buffer.storage.data());
        for (std::size_t at = 0; at < buffer.storage.size(); ++at) {
            const bool mine = at >= offset && at < offset + buffer.bytes;
            if (mine && argument.role == Role::output) continue;
            if (buffer.storage[at] != buffer.original[at]) {
                errors.mismatch =
                    fmt::format("{} {} was written", mine ? "input" : "guard of", argument.name);
                return errors;
            }
        }
        if (argument.role != Role::output) continue;
        const ElementType wanted_type = oracle_type(argument.type);
        for (std::size_t start = 0; start < buffer.count; start += row) {
            const std::size_t end = std::min(start + row, buffer.count);
            double squares = 0;
            for (std::size_t at = start; at < end; ++at) {
                const double want = element(wanted[i].data(), at, wanted_type);
                squares += want * want;
            }
            const double scale = std::sqrt(squares / static_cast<double>(end - start));
            for (std::size_t at = start; at < end; ++at) {
                const double got = element(buffer.data, at, argument.type);
                const double want = element(wanted[i].data(), at, wanted_type);
                if ((task_.tolerance.exact && got != want) || !std::isfinite(got)) {
                    errors.mismatch =
                        fmt::format("{}[{}]: expected {}, got {}", argument.name, at, want, got);
                    return errors;
                }
                const double difference = std::abs(got - want);
                if (difference > 0) errors.worst = std::max(errors.worst, difference / scale);
            }
        }
    }
    return errors;
}

double CallBuffers::scaled_error(const LoadedKernel& reference) {
    const Errors errors = compare(reference);
    if (!errors.mismatch.empty()) throw std::runtime_error(errors.mismatch);
    return errors.worst;
}

std::string CallBuffers::verify(const LoadedKernel& reference, double noise) {
    const Errors errors = compare(reference);
    if (!errors.mismatch.empty() || task_.tolerance.exact) return errors.mismatch;
    const double k = tools::evaluate_expression(task_.tolerance.k, case_.sizes);
    const double allowed =
        std::max(task_.tolerance.noise_factor * noise,
                 task_.tolerance.c * std::numeric_limits<float>::epsilon() * std::sqrt(k));
    if (errors.worst <= allowed) return {};
    return fmt::format("scaled error {:.3g}, allowed {:.3g}, noise {:.3g}", errors.worst, allowed,
                       noise);
}

}  // namespace skein::testing
