// y = x transposed in blocks of 8 x 8, held in registers between eight loads and eight stores.
//
// Blocks are visited in panels of 64 rows: the two blocks that share a cache line of x follow each
// other while it is still in the second-level cache, and a row of y receives 64 elements in a row.
#include <cstdint>

namespace {

typedef float Vector __attribute__((vector_size(32)));
typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));

Vector load(const float* p) {
    return *reinterpret_cast<const Unaligned*>(p);
}
void store(float* p, Vector v) {
    *reinterpret_cast<Unaligned*>(p) = v;
}

Vector low(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
Vector high(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
Vector low_pairs(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
}
Vector high_pairs(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
Vector low_half(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
}
Vector high_half(Vector a, Vector b) {
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

void block(const float* x, std::int64_t cols, float* y, std::int64_t rows) {
    const Vector x0 = load(x), x1 = load(x + cols), x2 = load(x + 2 * cols);
    const Vector x3 = load(x + 3 * cols), x4 = load(x + 4 * cols), x5 = load(x + 5 * cols);
    const Vector x6 = load(x + 6 * cols), x7 = load(x + 7 * cols);
    const Vector a0 = low(x0, x1), a1 = high(x0, x1), a2 = low(x2, x3), a3 = high(x2, x3);
    const Vector a4 = low(x4, x5), a5 = high(x4, x5), a6 = low(x6, x7), a7 = high(x6, x7);
    const Vector b0 = low_pairs(a0, a2), b1 = high_pairs(a0, a2), b2 = low_pairs(a1, a3);
    const Vector b3 = high_pairs(a1, a3), b4 = low_pairs(a4, a6), b5 = high_pairs(a4, a6);
    const Vector b6 = low_pairs(a5, a7), b7 = high_pairs(a5, a7);
    store(y, low_half(b0, b4));
    store(y + rows, low_half(b1, b5));
    store(y + 2 * rows, low_half(b2, b6));
    store(y + 3 * rows, low_half(b3, b7));
    store(y + 4 * rows, high_half(b0, b4));
    store(y + 5 * rows, high_half(b1, b5));
    store(y + 6 * rows, high_half(b2, b6));
    store(y + 7 * rows, high_half(b3, b7));
}

}  // namespace

extern "C" void transpose(const float* x, float* y, std::int64_t rows, std::int64_t cols) {
    const std::int64_t whole_rows = rows / 8 * 8, whole_cols = cols / 8 * 8;
    for (std::int64_t r0 = 0; r0 < whole_rows; r0 += 64) {
        const std::int64_t r1 = r0 + 64 < whole_rows ? r0 + 64 : whole_rows;
        for (std::int64_t c = 0; c < whole_cols; c += 8) {
            for (std::int64_t r = r0; r < r1; r += 8) {
                block(x + r * cols + c, cols, y + c * rows + r, rows);
            }
        }
    }
    for (std::int64_t r = 0; r < whole_rows; ++r) {
        for (std::int64_t c = whole_cols; c < cols; ++c) y[c * rows + r] = x[r * cols + c];
    }
    for (std::int64_t r = whole_rows; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) y[c * rows + r] = x[r * cols + c];
    }
}
