// C = A B, all row-major: A is m x k, B is k x n, C is m x n.
#pragma once
#include <cstdint>

extern "C" void sgemm(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
                      std::int64_t k);
