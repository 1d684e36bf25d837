// y[r, c] = x[r, c] / sqrt(mean(x[r, :]^2) + 1e-6) * weight[c].
#pragma once
#include <cstdint>

extern "C" void rmsnorm(const float* x, const float* weight, float* y, std::int64_t rows,
                        std::int64_t cols);
