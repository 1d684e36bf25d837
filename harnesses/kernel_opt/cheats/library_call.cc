// Lets an installed BLAS do the work.
#include <dlfcn.h>

#include <cstdint>

using Gemv = void (*)(int, int, int, int, float, const float*, int, const float*, int, float,
                      float*, int);

extern "C" void sgemv(const float* a, const float* x, float* y, std::int64_t m, std::int64_t n) {
    static void* library = dlopen("libblas.so.3", RTLD_NOW);
    static Gemv gemv = reinterpret_cast<Gemv>(library ? dlsym(library, "cblas_sgemv") : nullptr);
    if (gemv) {
        gemv(101, 111, static_cast<int>(m), static_cast<int>(n), 1.0f, a, static_cast<int>(n), x, 1,
             0.0f, y, 1);
        return;
    }
    for (std::int64_t i = 0; i < m; ++i) {
        float sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += a[i * n + j] * x[j];
        y[i] = sum;
    }
}
