// 3 x 3 convolution with zero padding of 1: every output is the sum over channels and taps.
#include <cstdint>

extern "C" void conv3x3(const float* x, const float* weight, float* y, std::int64_t channels,
                        std::int64_t filters, std::int64_t height, std::int64_t width) {
    for (std::int64_t f = 0; f < filters; ++f) {
        for (std::int64_t h = 0; h < height; ++h) {
            for (std::int64_t w = 0; w < width; ++w) {
                float sum = 0;
                for (std::int64_t c = 0; c < channels; ++c) {
                    for (std::int64_t i = 0; i < 3; ++i) {
                        for (std::int64_t j = 0; j < 3; ++j) {
                            const std::int64_t row = h + i - 1, column = w + j - 1;
                            if (row < 0 || row >= height || column < 0 || column >= width) {
                                continue;
                            }
                            sum += x[(c * height + row) * width + column] *
                                   weight[((f * channels + c) * 3 + i) * 3 + j];
                        }
                    }
                }
                y[(f * height + h) * width + w] = sum;
            }
        }
    }
}
