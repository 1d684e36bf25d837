// Histogram of bytes: eight bytes a load, eight tables, so that equal neighbours meet different
// counters and no addition waits for the store of the one before.
#include <cstdint>
#include <cstring>

extern "C" void histogram(const std::uint8_t* data, std::uint32_t* counts, std::int64_t n) {
    std::uint32_t tables[8][256];
    std::memset(tables, 0, sizeof tables);
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, data + i, sizeof word);
        ++tables[0][word & 255];
        ++tables[1][word >> 8 & 255];
        ++tables[2][word >> 16 & 255];
        ++tables[3][word >> 24 & 255];
        ++tables[4][word >> 32 & 255];
        ++tables[5][word >> 40 & 255];
        ++tables[6][word >> 48 & 255];
        ++tables[7][word >> 56];
    }
    for (; i < n; ++i) ++tables[0][data[i]];
    for (int value = 0; value < 256; ++value) {
        std::uint32_t count = 0;
        for (int table = 0; table < 8; ++table) count += tables[table][value];
        counts[value] = count;
    }
}
