// Oracle of sgemm in double; the inner loop runs along a row of B for the caches' sake.
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    const float* a = static_cast<const float*>(inputs[0]);
    const float* b = static_cast<const float*>(inputs[1]);
    double* c = static_cast<double*>(outputs[0]);
    for (std::int64_t i = 0; i < m; ++i) {
        double* row = c + i * n;
        for (std::int64_t j = 0; j < n; ++j) row[j] = 0;
        for (std::int64_t p = 0; p < k; ++p) {
            const double factor = a[i * k + p];
            for (std::int64_t j = 0; j < n; ++j) {
                row[j] += factor * static_cast<double>(b[p * n + j]);
            }
        }
    }
}
