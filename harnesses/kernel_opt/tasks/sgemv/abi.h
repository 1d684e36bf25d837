// y = A x for a row-major m x n matrix A.
#pragma once
#include <cstdint>

extern "C" void sgemv(const float* a, const float* x, float* y, std::int64_t m, std::int64_t n);
