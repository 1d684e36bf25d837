#pragma once
// Deterministic numbers and bitwise comparison for numeric tests.

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace skein::test {

/// A small generator whose values are the same everywhere (splitmix64).
class Numbers {
  public:
    explicit Numbers(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31U);
    }
    int below(int limit) { return static_cast<int>(bits() % static_cast<std::uint64_t>(limit)); }
    /// In [-1, 1).
    float unit() { return static_cast<float>(static_cast<double>(bits() >> 11U) * 0x1p-52 - 1.0); }
    std::vector<float> floats(std::size_t count, float size = 1.0F) {
        std::vector<float> values(count);
        for (float& value : values) value = unit() * size;
        return values;
    }

  private:
    std::uint64_t state_;
};

/// Index of the first element whose bits differ, or -1.
inline std::ptrdiff_t first_difference(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]))
            return static_cast<std::ptrdiff_t>(i);
    return -1;
}

/// FNV-1a over the bits.
inline std::uint64_t hash_of(std::span<const float> values) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const float value : values)
        hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001B3ULL;
    return hash;
}

}  // namespace skein::test
