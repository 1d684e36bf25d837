#include "model/cpu/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

using skein::model::ThreadPool;

TEST_SUITE("model/cpu/thread_pool") {
    TEST_CASE("every index is visited exactly once, for any number of threads and any grain") {
        for (const int threads : {1, 2, 3, 8}) {
            ThreadPool pool(threads);
            CHECK(pool.size() == threads);
            for (const int n : {0, 1, 2, 7, 64, 1000}) {
                for (const int grain : {1, 3, 64, 5000}) {
                    CAPTURE(threads);
                    CAPTURE(n);
                    CAPTURE(grain);
                    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
                    pool.parallel_for(n, grain, [&](int begin, int end) {
                        for (int i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
                    });
                    int wrong = 0;
                    for (const auto& count : visits) wrong += count != 1;
                    CHECK(wrong == 0);
                }
            }
        }
    }

    TEST_CASE("chunks start at multiples of the grain") {
        ThreadPool pool(3);
        std::atomic<int> misplaced{0};
        pool.parallel_for(1001, 16, [&](int begin, int end) {
            if (begin % 16 != 0 || end - begin > 16 || (end - begin < 16 && end != 1001))
                ++misplaced;
        });
        CHECK(misplaced == 0);
    }

    TEST_CASE("many short loops in a row lose and repeat nothing") {
        ThreadPool pool(3);
        std::atomic<long> sum{0};
        for (int loop = 0; loop < 20000; ++loop)
            pool.parallel_for(6, 1, [&](int begin, int) { sum += begin; });
        CHECK(sum == 20000L * 15);
    }

    TEST_CASE("what a loop wrote is visible after it") {
        ThreadPool pool(2);
        std::vector<int> values(512);
        for (int round = 1; round <= 200; ++round) {
            pool.parallel_for(512, 8, [&](int begin, int end) {
                for (int i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += i;
            });
        }
        int wrong = 0;
        for (int i = 0; i < 512; ++i) wrong += values[static_cast<std::size_t>(i)] != 200 * i;
        CHECK(wrong == 0);
    }

    TEST_CASE("grains divide the work among the threads in whole units") {
        ThreadPool pool(2);
        CHECK(pool.grain_for(100, 1) == 50);
        CHECK(pool.grain_for(100, 4) == 13);
        CHECK(pool.grain_for(100, 4, 8) == 16);
        CHECK(pool.grain_for(1, 4, 8) == 8);
    }
}
