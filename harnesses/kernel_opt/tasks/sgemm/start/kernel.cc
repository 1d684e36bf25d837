// C = A B, row-major: one dot product an element.
#include <cstdint>

extern "C" void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
                      std::int64_t k) {
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::int64_t p = 0; p < k; ++p) {
                sum += a[i * k + p] * b[p * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}
