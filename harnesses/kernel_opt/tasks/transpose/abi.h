// y[c, r] = x[r, c]; both row-major.
#pragma once
#include <cstdint>

extern "C" void transpose(const float* x, float* y, std::int64_t rows, std::int64_t cols);
