#pragma once
// A fixed set of threads that share one loop at a time.
//
// The caller takes part. Chunks are claimed in order from one atomic ticket, so a thread that the
// system has put aside delays nobody: the others take its chunks. Which thread runs a chunk never
// matters for results, because every output element is computed inside one chunk.
//
// Workers spin for some tens of microseconds after a loop (the next one usually follows at once
// inside a forward pass) and then sleep, so an idle engine uses no CPU.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace skein::model {

class ThreadPool {
  public:
    /// `threads` counts the caller: 1 starts no thread. Requires: threads >= 1.
    explicit ThreadPool(int threads);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return static_cast<int>(workers_.size()) + 1; }

    /// Calls body(begin, end) over [0, n) in chunks of `grain`; returns when all are done.
    /// Threads: one caller at a time. `body` must not throw.
    template <typename Body>
    void parallel_for(int n, int grain, const Body& body) {
        const auto call = [](const void* context, int begin, int end) {
            (*static_cast<const Body*>(context))(begin, end);
        };
        run(n, grain, call, &body);
    }

    /// A grain that gives each thread about `chunks_per_thread` chunks, a multiple of `unit`.
    int grain_for(int n, int chunks_per_thread, int unit = 1) const;

  private:
    using Call = void (*)(const void* context, int begin, int end);
    void run(int n, int grain, Call call, const void* context);
    void work();
    bool claim_and_run(std::uint32_t generation);

    // The loop in progress. Written only while the ticket has no unclaimed chunk, and a claim
    // compares the whole ticket, so a claim that succeeds has read the fields of its own loop.
    std::atomic<Call> call_{nullptr};
    std::atomic<const void*> context_{nullptr};
    std::atomic<int> n_{0};
    std::atomic<int> grain_{1};
    std::atomic<std::uint32_t> n_chunks_{0};

    alignas(64) std::atomic<std::uint64_t> ticket_{0};  ///< generation << 32 | unclaimed chunks
    alignas(64) std::atomic<std::uint32_t> unfinished_{0};
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
};

}  // namespace skein::model
