// Inclusive prefix sum, four independent sums a step so that the carried chain is one addition per
// four elements.
#include <cstdint>

extern "C" void scan(const std::int32_t* __restrict x, std::int32_t* __restrict y, std::int64_t n) {
    std::int32_t sum = 0;
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const std::int32_t s0 = x[i], s1 = s0 + x[i + 1];
        const std::int32_t pair = x[i + 2] + x[i + 3];
        y[i] = sum + s0;
        y[i + 1] = sum + s1;
        y[i + 2] = sum + s1 + x[i + 2];
        sum += s1 + pair;
        y[i + 3] = sum;
    }
    for (; i < n; ++i) y[i] = sum += x[i];
}
