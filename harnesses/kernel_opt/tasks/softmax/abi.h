// y[r, c] = exp(x[r, c] - max(x[r, :])) / sum of the same over the row.
#pragma once
#include <cstdint>

extern "C" void softmax(const float* x, float* y, std::int64_t rows, std::int64_t cols);
