// How often each byte value occurs.
#include <cstdint>

extern "C" void histogram(const std::uint8_t* data, std::uint32_t* counts, std::int64_t n) {
    for (int value = 0; value < 256; ++value) {
        counts[value] = 0;
    }
    for (std::int64_t i = 0; i < n; ++i) {
        ++counts[data[i]];
    }
}
