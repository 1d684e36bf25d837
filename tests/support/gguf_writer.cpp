#include "support/gguf_writer.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>

#include "model/load/quant.h"

namespace skein::test {
namespace {

template <typename T>
std::string pod(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string text(std::string_view value) {
    return pod(std::uint64_t{value.size()}) + std::string(value);
}

template <typename T>
std::string array_of(std::uint32_t element_type, std::span<const T> values) {
    std::string out = pod(element_type) + pod(std::uint64_t{values.size()});
    for (const T value : values) out += pod(value);
    return out;
}

std::uint64_t padded(std::uint64_t n, std::uint64_t alignment) {
    return (n + alignment - 1) / alignment * alignment;
}

}  // namespace

GgufWriter& GgufWriter::raw(std::string_view key, std::uint32_t value_type,
                            std::string_view bytes) {
    pairs_ += text(key) + pod(value_type) + std::string(bytes);
    ++n_pairs_;
    return *this;
}

GgufWriter& GgufWriter::u8(std::string_view key, std::uint8_t v) {
    return raw(key, 0, pod(v));
}
GgufWriter& GgufWriter::i8(std::string_view key, std::int8_t v) {
    return raw(key, 1, pod(v));
}
GgufWriter& GgufWriter::u16(std::string_view key, std::uint16_t v) {
    return raw(key, 2, pod(v));
}
GgufWriter& GgufWriter::i16(std::string_view key, std::int16_t v) {
    return raw(key, 3, pod(v));
}
GgufWriter& GgufWriter::u32(std::string_view key, std::uint32_t v) {
    return raw(key, 4, pod(v));
}
GgufWriter& GgufWriter::i32(std::string_view key, std::int32_t v) {
    return raw(key, 5, pod(v));
}
GgufWriter& GgufWriter::f32(std::string_view key, float v) {
    return raw(key, 6, pod(v));
}
GgufWriter& GgufWriter::boolean(std::string_view key, bool v) {
    return raw(key, 7, pod(static_cast<std::uint8_t>(v)));
}
GgufWriter& GgufWriter::string(std::string_view key, std::string_view v) {
    return raw(key, 8, text(v));
}
GgufWriter& GgufWriter::u64(std::string_view key, std::uint64_t v) {
    return raw(key, 10, pod(v));
}
GgufWriter& GgufWriter::i64(std::string_view key, std::int64_t v) {
    return raw(key, 11, pod(v));
}
GgufWriter& GgufWriter::f64(std::string_view key, double v) {
    return raw(key, 12, pod(v));
}

GgufWriter& GgufWriter::strings(std::string_view key, std::span<const std::string> values) {
    std::string out = pod(std::uint32_t{8}) + pod(std::uint64_t{values.size()});
    for (const std::string& value : values) out += text(value);
    return raw(key, 9, out);
}
GgufWriter& GgufWriter::u32s(std::string_view key, std::span<const std::uint32_t> values) {
    return raw(key, 9, array_of(4, values));
}
GgufWriter& GgufWriter::i32s(std::string_view key, std::span<const std::int32_t> values) {
    return raw(key, 9, array_of(5, values));
}
GgufWriter& GgufWriter::f32s(std::string_view key, std::span<const float> values) {
    return raw(key, 9, array_of(6, values));
}

GgufWriter& GgufWriter::tensor(std::string_view name, model::DType type,
                               std::vector<std::uint64_t> dims, std::span<const float> values) {
    const model::DTypeInfo& info = model::dtype_info(type);
    std::string data(values.size() / info.block_elements * info.block_bytes, '\0');
    model::quantize(type, values, reinterpret_cast<std::byte*>(data.data()));
    return raw_tensor(name, static_cast<std::uint32_t>(type), std::move(dims), data);
}

GgufWriter& GgufWriter::raw_tensor(std::string_view name, std::uint32_t type_id,
                                   std::vector<std::uint64_t> dims, std::string_view data) {
    tensors_.push_back({std::string(name), type_id, std::move(dims), std::string(data), {}, {}});
    return *this;
}

GgufWriter& GgufWriter::stated_offset(std::uint64_t offset) {
    tensors_.back().offset = offset;
    return *this;
}

GgufWriter& GgufWriter::stated_n_dims(std::uint32_t n_dims) {
    tensors_.back().n_dims = n_dims;
    return *this;
}

GgufWriter& GgufWriter::data_order(std::vector<std::size_t> order) {
    order_ = std::move(order);
    return *this;
}

std::vector<std::size_t> GgufWriter::order() const {
    if (!order_.empty()) return order_;
    std::vector<std::size_t> in_table_order(tensors_.size());
    std::iota(in_table_order.begin(), in_table_order.end(), std::size_t{0});
    return in_table_order;
}

std::vector<std::uint64_t> GgufWriter::offsets() const {
    std::vector<std::uint64_t> result(tensors_.size());
    std::uint64_t next = 0;
    for (const std::size_t i : order()) {
        result[i] = padded(next, alignment);
        next = result[i] + tensors_[i].data.size();
    }
    return result;
}

std::string GgufWriter::head() const {
    std::string out = "GGUF" + pod(version) + pod(stated_tensors.value_or(tensors_.size())) +
                      pod(stated_pairs.value_or(n_pairs_)) + pairs_;
    const std::vector<std::uint64_t> where = offsets();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const Entry& t = tensors_[i];
        out += text(t.name) + pod(t.n_dims.value_or(static_cast<std::uint32_t>(t.dims.size())));
        for (const std::uint64_t dim : t.dims) out += pod(dim);
        out += pod(t.type_id) + pod(t.offset.value_or(where[i]));
    }
    return out;
}

std::size_t GgufWriter::data_offset() const {
    return static_cast<std::size_t>(padded(head().size(), alignment));
}

std::string GgufWriter::bytes() const {
    std::string out = head();
    if (tensors_.empty()) return out;
    const std::size_t start = data_offset();
    const std::vector<std::uint64_t> where = offsets();
    for (const std::size_t i : order()) {
        out.resize(start + static_cast<std::size_t>(where[i]), '\0');
        out += tensors_[i].data;
    }
    return out;
}

void GgufWriter::write(const std::filesystem::path& path) const {
    write_file(path, bytes());
}

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "skein-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // a destructor must not throw; a left-over folder harms nobody
    std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("missing file " + path.string());
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace skein::test
