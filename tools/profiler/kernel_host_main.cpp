// skein-kernel-host LIBRARY BUFFER...   where BUFFER is r:BYTES or w:BYTES
//
// Loads one kernel and calls it when told. It runs inside a sandbox, in the same address space as
// code nobody trusts, so it decides nothing: its parent holds the clock, the inputs and the
// outputs.

#include <dlfcn.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include "tools/profiler/kernel_host_protocol.h"

namespace {

using namespace skein::tools::host;

using KernelCall = void (*)(void* const* buffers, const std::int64_t* sizes);

struct MappedBuffer {
    char* base = nullptr;  ///< after the leading guard
    std::uint64_t capacity = 0;
    bool writable = false;
};

std::array<MappedBuffer, kMaxBuffers> buffers;
std::size_t n_buffers = 0;
Answers* answers = nullptr;

[[noreturn]] void fail(int code, std::string_view message) {
    std::array<std::string_view, 3> parts{"skein-kernel-host: ", message, "\n"};
    for (std::string_view part : parts) {
        if (write(STDERR_FILENO, part.data(), part.size()) < 0) break;
    }
    _exit(code);
}

void* map_shared(int fd, std::uint64_t bytes, bool writable, void* at) {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const int flags = MAP_SHARED | MAP_POPULATE | (at != nullptr ? MAP_FIXED : 0);
    void* address = mmap(at, bytes, protection, flags, fd, 0);
    if (address == MAP_FAILED) fail(kExitMap, "a shared buffer cannot be mapped");
    close(fd);  // the kernel must find no descriptor to write to
    return address;
}

void map_buffer(std::string_view argument) {
    MappedBuffer& buffer = buffers[n_buffers];
    if (argument.size() < 3 || argument[1] != ':') fail(kExitUsage, "expected r:BYTES or w:BYTES");
    buffer.writable = argument[0] == 'w';
    const char* last = argument.data() + argument.size();
    if (std::from_chars(argument.data() + 2, last, buffer.capacity).ec != std::errc{}) {
        fail(kExitUsage, "a buffer size is not a number");
    }
    const std::uint64_t reserved = buffer.capacity + 2 * kGuardBytes;
    void* area = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) fail(kExitMap, "no address space for a buffer");
    buffer.base = static_cast<char*>(area) + kGuardBytes;
    map_shared(kFirstBufferFd + static_cast<int>(n_buffers), buffer.capacity, buffer.writable,
               buffer.base);
    ++n_buffers;
}

/// Tells the parent what the fault touched, then lets it kill the process.
void on_fault(int signal_number, siginfo_t* info, void*) {
    const char* address = static_cast<const char*>(info->si_addr);
    Fault fault = Fault::elsewhere;
    for (std::size_t i = 0; i < n_buffers; ++i) {
        const MappedBuffer& buffer = buffers[i];
        if (address < buffer.base - kGuardBytes ||
            address >= buffer.base + buffer.capacity + kGuardBytes) {
            continue;
        }
        const bool inside = address >= buffer.base && address < buffer.base + buffer.capacity;
        fault = inside ? Fault::input_write : Fault::guard;
        answers->fault_buffer = static_cast<std::uint32_t>(i);
    }
    answers->fault.store(fault);
    signal(signal_number, SIG_DFL);  // the instruction faults again and ends the process
}

void watch_faults() {
    static std::array<char, 1 << 16> stack;
    stack_t alternate{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
}

KernelCall load(const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) fail(kExitLoad, dlerror());
    void* entry = dlsym(handle, kEntry);
    if (entry == nullptr) fail(kExitLoad, "the library has no entry");
    KernelCall call = nullptr;
    std::memcpy(&call, &entry, sizeof call);
    return call;
}

/// Brings the buffers into this core's caches: the parent wrote them on another core.
void touch(const Orders& orders) {
    for (std::size_t i = 0; i < n_buffers; ++i) {
        const volatile char* bytes = buffers[i].base + orders.offsets[i];
        for (std::uint64_t at = 0; at < orders.bytes[i]; at += 64) static_cast<void>(bytes[at]);
    }
}

void call_kernel(KernelCall call, const Orders& orders, std::uint32_t sequence) {
    std::array<void*, kMaxBuffers> pointers{};
    std::array<std::int64_t, kMaxSizes> sizes{};
    for (std::size_t i = 0; i < n_buffers; ++i) pointers[i] = buffers[i].base + orders.offsets[i];
    std::memcpy(sizes.data(), orders.sizes, sizeof orders.sizes);
    const std::uint32_t repeat = orders.repeat;
    touch(orders);
    answers->ready.store(sequence);
    while (orders.go.load(std::memory_order_acquire) != sequence) _mm_pause();

    _mm_lfence();
    const std::uint64_t begin = __rdtsc();
    _mm_lfence();
    for (std::uint32_t i = 0; i < repeat; ++i) call(pointers.data(), sizes.data());
    _mm_sfence();  // streamed stores must land before `done` is seen
    unsigned core = 0;
    const std::uint64_t end = __rdtscp(&core);
    // Only a kernel can have done this, and it gains nothing from the trace being left out: the
    // parent's own stamps tell the same whenever it was looking.
    if (answers->done.load() == sequence) answers->early_done = sequence;
    answers->begin_tsc = begin;
    answers->end_tsc = end;
    answers->done.store(sequence, std::memory_order_release);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 2 + kMaxBuffers) fail(kExitUsage, "LIBRARY BUFFER...");
    auto* orders = static_cast<Orders*>(map_shared(kOrdersFd, kPageBytes, false, nullptr));
    answers = static_cast<Answers*>(map_shared(kAnswersFd, kPageBytes, true, nullptr));
    for (int i = 2; i < argc; ++i) map_buffer(argv[i]);
    watch_faults();
    KernelCall call = load(argv[1]);
    answers->loaded.store(1);

    std::uint32_t sequence = 0;
    while (true) {
        while (orders->sequence.load() == sequence) {
            syscall(SYS_futex, &orders->sequence, FUTEX_WAIT, sequence, nullptr, nullptr, 0);
        }
        sequence = orders->sequence.load();
        if (orders->order == Order::quit) _exit(0);
        call_kernel(call, *orders, sequence);
    }
}
