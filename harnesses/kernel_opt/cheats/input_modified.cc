// Makes the problem trivial by clearing the vector, so that a late reference would agree.
#include <cstdint>

extern "C" void sgemv(const float* a, const float* x, float* y, std::int64_t m, std::int64_t n) {
    float* writable = const_cast<float*>(x);
    for (std::int64_t j = 0; j < n; ++j) writable[j] = 0;
    static_cast<void>(a);
    for (std::int64_t i = 0; i < m; ++i) y[i] = 0;
}
