#pragma once
// A fast 64-bit checksum for blocks of memory: finds damage, not malice.
//
// Four lanes take 8 bytes each in turn: lane = (lane xor word) * odd constant, then a shift brings
// high bits down; at the end the lanes, the length and the rest of the bytes are mixed the same
// way. The result is part of the snapshot format.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace skein::model {

class Checksum {
  public:
    void add(std::span<const std::byte> bytes) {
        std::size_t at = 0;
        for (; at + 32 <= bytes.size(); at += 32)
            for (std::size_t lane = 0; lane < 4; ++lane)
                lanes_[lane] = mix(lanes_[lane], word(bytes.data() + at + 8 * lane, 8));
        for (; at < bytes.size(); at += 8) {
            const std::size_t left = bytes.size() - at;
            lanes_[0] = mix(lanes_[0], word(bytes.data() + at, left < 8 ? left : 8));
        }
        lanes_[1] = mix(lanes_[1], bytes.size());
    }
    template <typename T>
    void add_value(const T& value) {
        add(std::as_bytes(std::span(&value, 1)));
    }
    std::uint64_t value() const {
        std::uint64_t sum = lanes_[0];
        for (std::size_t lane = 1; lane < 4; ++lane) sum = mix(sum, lanes_[lane]);
        return mix(sum, sum >> 29U);
    }

  private:
    static std::uint64_t word(const std::byte* at, std::size_t bytes) {
        std::uint64_t value = 0;
        std::memcpy(&value, at, bytes);
        return value;
    }
    static std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
        state = (state ^ word) * 0x9E3779B97F4A7C15ULL;
        return state ^ (state >> 32U);
    }
    std::array<std::uint64_t, 4> lanes_{0x243F6A8885A308D3ULL, 0x13198A2E03707344ULL,
                                        0xA4093822299F31D0ULL, 0x082EFA98EC4E6C89ULL};
};

/// The next number of SplitMix64 (Steele, Lea & Flood 2014): for data without meaning.
inline std::uint64_t next_random(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
}

}  // namespace skein::model
