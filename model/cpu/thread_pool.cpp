#include "model/cpu/thread_pool.h"

#include <algorithm>

#include "model/expect.h"

namespace skein::model {
namespace {

constexpr int kSpins = 2000;  // about 30 microseconds

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

std::uint32_t generation_of(std::uint64_t ticket) {
    return static_cast<std::uint32_t>(ticket >> 32U);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
    expect(threads >= 1, "a thread pool has at least its caller");
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
    stopping_.store(true);
    {
        const std::lock_guard lock(mutex_);
        wake_.notify_all();
    }
    for (auto& worker : workers_) worker.join();
}

int ThreadPool::grain_for(int n, int chunks_per_thread, int unit) const {
    const int chunks = std::max(1, size() * chunks_per_thread);
    const int grain = (n + chunks - 1) / chunks;
    return std::max(unit, (grain + unit - 1) / unit * unit);
}

void ThreadPool::run(int n, int grain, Call call, const void* context) {
    if (n <= 0) return;
    grain = std::max(1, grain);
    if (workers_.empty() || n <= grain) {
        call(context, 0, n);
        return;
    }
    const auto n_chunks = static_cast<std::uint32_t>((n + grain - 1) / grain);
    call_.store(call, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    n_.store(n, std::memory_order_relaxed);
    grain_.store(grain, std::memory_order_relaxed);
    n_chunks_.store(n_chunks, std::memory_order_relaxed);
    unfinished_.store(n_chunks, std::memory_order_relaxed);
    const std::uint32_t generation = generation_of(ticket_.load(std::memory_order_relaxed)) + 1U;
    // Sequentially consistent against `sleepers_`: either a worker going to sleep sees this ticket,
    // or we see that it sleeps.
    ticket_.store(static_cast<std::uint64_t>(generation) << 32U | n_chunks);
    if (sleepers_.load() > 0) {
        const std::lock_guard lock(mutex_);
        wake_.notify_all();
    }
    while (claim_and_run(generation)) {
    }
    for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
        if (spins < kSpins)
            pause_briefly();
        else
            std::this_thread::yield();
    }
}

bool ThreadPool::claim_and_run(std::uint32_t generation) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (true) {
        if (generation_of(ticket) != generation) return false;
        const auto unclaimed = static_cast<std::uint32_t>(ticket);
        if (unclaimed == 0) return false;
        const std::uint32_t chunk = n_chunks_.load(std::memory_order_relaxed) - unclaimed;
        const Call call = call_.load(std::memory_order_relaxed);
        const void* context = context_.load(std::memory_order_relaxed);
        const int n = n_.load(std::memory_order_relaxed);
        const int grain = grain_.load(std::memory_order_relaxed);
        // A successful exchange proves that the loop was still this one while its fields were read:
        // it cannot end before the chunk that is claimed here has run.
        if (!ticket_.compare_exchange_weak(ticket, ticket - 1U, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
            continue;
        const int begin = static_cast<int>(chunk) * grain;
        call(context, begin, std::min(n, begin + grain));
        unfinished_.fetch_sub(1U, std::memory_order_acq_rel);
        return true;
    }
}

void ThreadPool::work() {
    std::uint32_t seen = 0;
    while (true) {
        int spins = 0;
        std::uint32_t current = generation_of(ticket_.load(std::memory_order_acquire));
        while (current == seen && spins++ < kSpins && !stopping_.load()) {
            pause_briefly();
            current = generation_of(ticket_.load(std::memory_order_acquire));
        }
        if (current == seen) {
            std::unique_lock lock(mutex_);
            sleepers_.fetch_add(1);
            wake_.wait(lock,
                       [&] { return generation_of(ticket_.load()) != seen || stopping_.load(); });
            sleepers_.fetch_sub(1);
        }
        if (stopping_.load()) return;
        seen = generation_of(ticket_.load(std::memory_order_acquire));
        while (claim_and_run(seen)) {
        }
    }
}

}  // namespace skein::model
