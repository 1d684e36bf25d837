// y = x transposed, row-major: x is read along its rows.
#include <cstdint>

extern "C" void transpose(const float* x, float* y, std::int64_t rows, std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
            y[c * rows + r] = x[r * cols + c];
        }
    }
}
