// Oracle of transpose.
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t rows = sizes[0], cols = sizes[1];
    const float* x = static_cast<const float*>(inputs[0]);
    double* y = static_cast<double*>(outputs[0]);
    for (std::int64_t c = 0; c < cols; ++c) {
        for (std::int64_t r = 0; r < rows; ++r) y[c * rows + r] = x[r * cols + c];
    }
}
