// Oracle of sgemv in double.
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t m = sizes[0], n = sizes[1];
    const float* a = static_cast<const float*>(inputs[0]);
    const float* x = static_cast<const float*>(inputs[1]);
    double* y = static_cast<double*>(outputs[0]);
    for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) {
            sum += static_cast<double>(a[i * n + j]) * static_cast<double>(x[j]);
        }
        y[i] = sum;
    }
}
