#pragma once
// The memory that `skein-kernel-host` and its parent share. Plain data only.
//
//   orders    written by the parent, sealed so that the host can only read it
//   answers   written by the host: hints for the parent, never a verdict
//   buffers   one memory file an argument; inputs are sealed like `orders`
//
// A call: parent fills buffers and `orders`, raises `sequence` and wakes the host; the host touches
// the buffers, sets `ready` and spins; the parent sets `go` (time starts); the host calls the
// kernel and sets `done` (time ends), then sleeps until `sequence` changes again.

#include <atomic>
#include <cstdint>

namespace skein::tools::host {

inline constexpr int kMaxBuffers = 16;
inline constexpr int kMaxSizes = 16;
inline constexpr int kOrdersFd = 3;
inline constexpr int kAnswersFd = 4;
inline constexpr int kFirstBufferFd = 5;
inline constexpr std::uint64_t kPageBytes = 4096;
inline constexpr std::uint64_t kGuardBytes = 1 << 16;  ///< inaccessible, on both sides of a buffer
inline constexpr const char* kEntry = "skein_call";

enum class Order : std::uint32_t { none, call, quit };

/// Exit codes of the host program itself; the kernel could use them too, but only to fail.
enum ExitCode { kExitUsage = 70, kExitMap = 71, kExitLoad = 72 };

struct Orders {
    std::atomic<std::uint32_t> sequence;  ///< a futex
    std::atomic<std::uint32_t> go;
    Order order;
    std::uint32_t repeat;  ///< calls in a row; 0 times the hand-over alone
    std::uint64_t offsets[kMaxBuffers];
    std::uint64_t bytes[kMaxBuffers];
    std::int64_t sizes[kMaxSizes];
};

/// Where a fault happened, as the host's handler saw it.
enum class Fault : std::uint32_t { none, elsewhere, input_write, guard };

struct Answers {
    std::atomic<std::uint32_t> loaded;
    std::atomic<std::uint32_t> ready;
    std::atomic<std::uint32_t> done;
    std::atomic<Fault> fault;
    std::uint32_t fault_buffer;
    std::uint32_t early_done;  ///< a call that was marked done before it returned
    std::uint64_t begin_tsc, end_tsc;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(Orders) <= kPageBytes && sizeof(Answers) <= kPageBytes);

}  // namespace skein::tools::host
