// One image in NCHW order: x is [channels, height, width], weight [filters, channels, 3, 3], y is
// [filters, height, width]; stride 1, zero padding of 1.
#pragma once
#include <cstdint>

extern "C" void conv3x3(const float* x, const float* weight, float* y, std::int64_t channels,
                        std::int64_t filters, std::int64_t height, std::int64_t width);
