// C = A B: columns of B packed in strips of 16, then tiles of 6 x 16 sums held in registers.
#include <cstdint>
#include <vector>

namespace {

typedef float Vector __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));

constexpr int kRows = 6;
constexpr int kColumns = 16;

Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, Vector v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}

// Rows past the last are computed from row 0 again and dropped by the caller.
void tile(const float* const* rows, const float* strip, std::int64_t k, float* out) {
    Vector s00 = {}, s01 = {}, s10 = {}, s11 = {}, s20 = {}, s21 = {};
    Vector s30 = {}, s31 = {}, s40 = {}, s41 = {}, s50 = {}, s51 = {};
    const float *a0 = rows[0], *a1 = rows[1], *a2 = rows[2], *a3 = rows[3], *a4 = rows[4],
                *a5 = rows[5];
    for (std::int64_t p = 0; p < k; ++p) {
        const Vector b0 = load(strip + p * kColumns), b1 = load(strip + p * kColumns + 8);
        s00 += a0[p] * b0;
        s01 += a0[p] * b1;
        s10 += a1[p] * b0;
        s11 += a1[p] * b1;
        s20 += a2[p] * b0;
        s21 += a2[p] * b1;
        s30 += a3[p] * b0;
        s31 += a3[p] * b1;
        s40 += a4[p] * b0;
        s41 += a4[p] * b1;
        s50 += a5[p] * b0;
        s51 += a5[p] * b1;
    }
    const Vector sums[kRows][2] = {{s00, s01}, {s10, s11}, {s20, s21},
                                   {s30, s31}, {s40, s41}, {s50, s51}};
    for (int r = 0; r < kRows; ++r) {
        store(out + r * kColumns, sums[r][0]);
        store(out + r * kColumns + 8, sums[r][1]);
    }
}

}  // namespace

extern "C" void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
                      std::int64_t k) {
    std::vector<float> strip(static_cast<std::size_t>(k * kColumns));
    for (std::int64_t j = 0; j < n; j += kColumns) {
        const std::int64_t columns = n - j < kColumns ? n - j : kColumns;
        for (std::int64_t p = 0; p < k; ++p) {
            float* packed = strip.data() + p * kColumns;
            for (std::int64_t v = 0; v < columns; ++v) packed[v] = b[p * n + j + v];
            for (std::int64_t v = columns; v < kColumns; ++v) packed[v] = 0;
        }
        for (std::int64_t i = 0; i < m; i += kRows) {
            const float* rows[kRows];
            for (int r = 0; r < kRows; ++r) rows[r] = a + (i + r < m ? i + r : i) * k;
            alignas(32) float out[kRows * kColumns];
            tile(rows, strip.data(), k, out);
            for (std::int64_t r = 0; r < kRows && i + r < m; ++r) {
                for (std::int64_t v = 0; v < columns; ++v) {
                    c[(i + r) * n + j + v] = out[r * kColumns + v];
                }
            }
        }
    }
}
