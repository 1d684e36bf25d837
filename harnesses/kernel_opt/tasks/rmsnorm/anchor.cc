// Every row divided by its root mean square, times a weight a column.
#include <cmath>
#include <cstdint>

extern "C" void rmsnorm(const float* x, const float* weight, float* y, std::int64_t rows,
                        std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        float* out = y + r * cols;
        float squares = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
            squares += in[c] * in[c];
        }
        const float rms = std::sqrt(squares / static_cast<float>(cols) + 1e-6f);
        for (std::int64_t c = 0; c < cols; ++c) {
            out[c] = in[c] / rms * weight[c];
        }
    }
}
