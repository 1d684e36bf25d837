// y = A x: four rows at a time, two vector accumulators a row, every row's loads contiguous.
#include <cstdint>

namespace {

typedef float Vector __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));

Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}

float sum_of(Vector v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

}  // namespace

extern "C" void sgemv(const float* a, const float* x, float* y, std::int64_t m, std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const float* row = a + i * n;
        Vector s00 = {}, s10 = {}, s20 = {}, s30 = {}, s01 = {}, s11 = {}, s21 = {}, s31 = {};
        std::int64_t j = 0;
        for (; j + 16 <= n; j += 16) {
            const Vector x0 = load(x + j), x1 = load(x + j + 8);
            s00 += load(row + j) * x0;
            s01 += load(row + j + 8) * x1;
            s10 += load(row + n + j) * x0;
            s11 += load(row + n + j + 8) * x1;
            s20 += load(row + 2 * n + j) * x0;
            s21 += load(row + 2 * n + j + 8) * x1;
            s30 += load(row + 3 * n + j) * x0;
            s31 += load(row + 3 * n + j + 8) * x1;
        }
        float t0 = sum_of(s00 + s01), t1 = sum_of(s10 + s11);
        float t2 = sum_of(s20 + s21), t3 = sum_of(s30 + s31);
        for (; j < n; ++j) {
            t0 += row[j] * x[j];
            t1 += row[n + j] * x[j];
            t2 += row[2 * n + j] * x[j];
            t3 += row[3 * n + j] * x[j];
        }
        y[i] = t0;
        y[i + 1] = t1;
        y[i + 2] = t2;
        y[i + 3] = t3;
    }
    for (; i < m; ++i) {
        float sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += a[i * n + j] * x[j];
        y[i] = sum;
    }
}
