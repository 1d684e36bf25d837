#pragma once
// Reads the .npy files of the fixtures: format 1.0, little-endian, C order, float32 or int16 (whose
// values become floats, exactly).

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace skein::test {

struct NpyArray {
    std::vector<std::size_t> shape;
    std::vector<float> values;
    /// Row `index` of a matrix.
    const float* row(std::size_t index) const { return values.data() + index * shape.back(); }
};

/// Throws: std::runtime_error when the file is missing or of another format.
inline NpyArray load_npy(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " + path.string());
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto fail = [&](const char* why) {
        throw std::runtime_error(path.string() + ": " + why);
    };
    if (bytes.size() < 10 || bytes.compare(0, 8, std::string("\x93NUMPY\x01\x00", 8)) != 0)
        fail("not .npy 1.0");
    const auto header_bytes = static_cast<std::size_t>(static_cast<unsigned char>(bytes[8]) |
                                                       static_cast<unsigned char>(bytes[9]) << 8);
    const std::string header = bytes.substr(10, header_bytes);
    const bool shorts = header.find("'<i2'") != std::string::npos;
    if ((!shorts && header.find("'<f4'") == std::string::npos) ||
        header.find("False") == std::string::npos)
        fail("expected float32 or int16 in C order");
    NpyArray array;
    std::size_t count = 1;
    for (std::size_t at = header.find('(') + 1; header[at] != ')';) {
        if (header[at] < '0' || header[at] > '9') {
            ++at;
            continue;
        }
        std::size_t digits = 0;
        array.shape.push_back(std::stoul(header.substr(at), &digits));
        count *= array.shape.back();
        at += digits;
    }
    const std::size_t size = shorts ? sizeof(std::int16_t) : sizeof(float);
    if (bytes.size() != 10 + header_bytes + count * size) fail("wrong size");
    array.values.resize(count);
    const char* data = bytes.data() + 10 + header_bytes;
    if (!shorts) std::memcpy(array.values.data(), data, count * size);
    for (std::size_t i = 0; shorts && i < count; ++i) {
        std::int16_t value = 0;
        std::memcpy(&value, data + i * size, size);
        array.values[i] = value;
    }
    return array;
}

}  // namespace skein::test
