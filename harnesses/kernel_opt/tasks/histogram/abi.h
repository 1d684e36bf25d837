// counts[v] = how many of the n bytes equal v.
#pragma once
#include <cstdint>

extern "C" void histogram(const std::uint8_t* data, std::uint32_t* counts, std::int64_t n);
