#pragma once
// Writes small GGUF files for tests: metadata of every value type and tensors of every type, right
// by default and wrong on request (any field can be overridden), so that refusals can be tested.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/load/dtype.h"

namespace skein::test {

class GgufWriter {
  public:
    std::uint32_t version = 3;
    std::uint64_t alignment = 32;  ///< used for padding; write the key yourself when it is not 32
    std::optional<std::uint64_t> stated_pairs;    ///< header count, when it shall be wrong
    std::optional<std::uint64_t> stated_tensors;  ///< header count, when it shall be wrong

    GgufWriter& u8(std::string_view key, std::uint8_t value);
    GgufWriter& i8(std::string_view key, std::int8_t value);
    GgufWriter& u16(std::string_view key, std::uint16_t value);
    GgufWriter& i16(std::string_view key, std::int16_t value);
    GgufWriter& u32(std::string_view key, std::uint32_t value);
    GgufWriter& i32(std::string_view key, std::int32_t value);
    GgufWriter& u64(std::string_view key, std::uint64_t value);
    GgufWriter& i64(std::string_view key, std::int64_t value);
    GgufWriter& f32(std::string_view key, float value);
    GgufWriter& f64(std::string_view key, double value);
    GgufWriter& boolean(std::string_view key, bool value);
    GgufWriter& string(std::string_view key, std::string_view value);
    GgufWriter& strings(std::string_view key, std::span<const std::string> values);
    GgufWriter& u32s(std::string_view key, std::span<const std::uint32_t> values);
    GgufWriter& i32s(std::string_view key, std::span<const std::int32_t> values);
    GgufWriter& f32s(std::string_view key, std::span<const float> values);
    /// A pair whose value bytes are given as they are.
    GgufWriter& raw(std::string_view key, std::uint32_t value_type, std::string_view bytes);

    /// A tensor encoded from floats. `dims[0]` is the row length.
    GgufWriter& tensor(std::string_view name, model::DType type, std::vector<std::uint64_t> dims,
                       std::span<const float> values);
    /// A tensor of bytes already encoded, with any type id and any dims.
    GgufWriter& raw_tensor(std::string_view name, std::uint32_t type_id,
                           std::vector<std::uint64_t> dims, std::string_view data);
    /// Changes what the table says about the tensor added last; its data stays where it was.
    GgufWriter& stated_offset(std::uint64_t offset);
    GgufWriter& stated_n_dims(std::uint32_t n_dims);
    /// Order in which the data of the tensors is laid out, as indices into the table.
    GgufWriter& data_order(std::vector<std::size_t> order);

    /// The file without padding after the last tensor.
    std::string bytes() const;
    /// Bytes before the tensor data.
    std::size_t data_offset() const;
    void write(const std::filesystem::path& path) const;

  private:
    struct Entry {
        std::string name;
        std::uint32_t type_id;
        std::vector<std::uint64_t> dims;
        std::string data;
        std::optional<std::uint64_t> offset;
        std::optional<std::uint32_t> n_dims;
    };
    std::vector<std::uint64_t> offsets() const;
    std::vector<std::size_t> order() const;
    std::string head() const;

    std::string pairs_;
    std::uint64_t n_pairs_ = 0;
    std::vector<Entry> tensors_;
    std::vector<std::size_t> order_;
};

/// A folder that is removed with its content at the end of the test.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, std::string_view bytes);
/// Throws: std::runtime_error when the file is missing.
std::string read_file(const std::filesystem::path& path);

}  // namespace skein::test
