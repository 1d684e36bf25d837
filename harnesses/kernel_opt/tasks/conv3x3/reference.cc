// Oracle of conv3x3 in double; the innermost loop runs along a row for the caches' sake.
#include <algorithm>
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t channels = sizes[0], filters = sizes[1], height = sizes[2], width = sizes[3];
    const float* x = static_cast<const float*>(inputs[0]);
    const float* weight = static_cast<const float*>(inputs[1]);
    double* y = static_cast<double*>(outputs[0]);
    std::fill(y, y + filters * height * width, 0.0);
    for (std::int64_t f = 0; f < filters; ++f) {
        for (std::int64_t c = 0; c < channels; ++c) {
            for (std::int64_t tap = 0; tap < 9; ++tap) {
                const double factor = weight[(f * channels + c) * 9 + tap];
                const std::int64_t down = tap / 3 - 1, right = tap % 3 - 1;
                for (std::int64_t h = std::max<std::int64_t>(0, -down);
                     h < std::min(height, height - down); ++h) {
                    for (std::int64_t w = std::max<std::int64_t>(0, -right);
                         w < std::min(width, width - right); ++w) {
                        y[(f * height + h) * width + w] +=
                            factor *
                            static_cast<double>(x[(c * height + h + down) * width + w + right]);
                    }
                }
            }
        }
    }
}
