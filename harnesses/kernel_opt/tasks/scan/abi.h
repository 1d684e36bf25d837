// y[i] = x[0] + ... + x[i]; no sum overflows.
#pragma once
#include <cstdint>

extern "C" void scan(const std::int32_t* x, std::int32_t* y, std::int64_t n);
