// Oracle of rmsnorm in double.
#include <cmath>
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t rows = sizes[0], cols = sizes[1];
    const float* x = static_cast<const float*>(inputs[0]);
    const float* weight = static_cast<const float*>(inputs[1]);
    double* y = static_cast<double*>(outputs[0]);
    for (std::int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * cols;
        double squares = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
            squares += static_cast<double>(in[c]) * static_cast<double>(in[c]);
        }
        const double rms = std::sqrt(squares / static_cast<double>(cols) + 1e-6);
        for (std::int64_t c = 0; c < cols; ++c) {
            y[r * cols + c] = static_cast<double>(in[c]) / rms * static_cast<double>(weight[c]);
        }
    }
}
