#include "model/load/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "model/error.h"
#include "model/load/byte_cursor.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

struct ValueType {
    GgufType type;
    std::string_view name;
    std::size_t bytes;  ///< 0: variable
};
constexpr ValueType kValueTypes[] = {
    {GgufType::u8, "u8", 1},       {GgufType::i8, "i8", 1},        {GgufType::u16, "u16", 2},
    {GgufType::i16, "i16", 2},     {GgufType::u32, "u32", 4},      {GgufType::i32, "i32", 4},
    {GgufType::f32, "f32", 4},     {GgufType::boolean, "bool", 1}, {GgufType::string, "string", 0},
    {GgufType::array, "array", 0}, {GgufType::u64, "u64", 8},      {GgufType::i64, "i64", 8},
    {GgufType::f64, "f64", 8},
};

const ValueType* value_type(std::uint32_t id) {
    for (const ValueType& t : kValueTypes) {
        if (static_cast<std::uint32_t>(t.type) == id) return &t;
    }
    return nullptr;
}

// Smallest encodings, used to refuse counts that cannot fit into what remains of the file.
constexpr std::uint64_t kMinPairBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class Parser {
  public:
    Parser(std::span<const std::byte> bytes, std::string where)
        : bytes_(bytes), where_(std::move(where)), in_(bytes, where_) {}

    GgufIndex parse() {
        read_header();
        for (std::uint64_t i = 0; i < n_pairs_; ++i) read_pair();
        read_alignment();
        offsets_.reserve(static_cast<std::size_t>(n_tensors_));
        index_.tensors.reserve(static_cast<std::size_t>(n_tensors_));
        for (std::uint64_t i = 0; i < n_tensors_; ++i) read_tensor();
        // The position is at most the file size and the alignment at most 1 MiB: no overflow.
        index_.data_offset =
            (in_.position() + index_.alignment - 1) / index_.alignment * index_.alignment;
        place_tensors();
        refuse_overlaps();
        index_.where = where_;
        return std::move(index_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", where_, printable(message, 1000)));
    }

    void read_header() {
        const auto magic = in_.read<std::uint32_t>("magic");
        if (magic != 0x46554747U) fail("not a GGUF file: it does not start with 'GGUF'");
        index_.version = in_.read<std::uint32_t>("version");
        if ((index_.version & 0xFFFFU) == 0) {
            fail(
                fmt::format("version field 0x{:08x}: this GGUF file is big-endian, only "
                            "little-endian files are read",
                            index_.version));
        }
        if (index_.version != 2 && index_.version != 3) {
            fail(fmt::format("GGUF version {} is not supported, only 2 and 3 are{}", index_.version,
                             index_.version == 1 ? "; convert the model again" : ""));
        }
        n_tensors_ = in_.read<std::uint64_t>("tensor count");
        n_pairs_ = in_.read<std::uint64_t>("metadata count");
        check_count("metadata pairs", n_pairs_, kGgufMaxPairs, kMinPairBytes);
        check_count("tensors", n_tensors_, kGgufMaxTensors, kMinTensorBytes);
    }

    void check_count(std::string_view what, std::uint64_t count, std::uint64_t limit,
                     std::uint64_t min_bytes) const {
        if (count > limit) fail(fmt::format("states {} {}, limit {}", count, what, limit));
        if (count > in_.remaining() / min_bytes) {
            fail(fmt::format("states {} {}, which need at least {} bytes; {} remain", count, what,
                             count * min_bytes, in_.remaining()));
        }
    }

    void read_pair() {
        GgufPair pair;
        pair.key = in_.read_string(kGgufMaxKeyBytes, "metadata key");
        if (pair.key.empty()) fail(fmt::format("empty metadata key at byte {}", in_.position()));
        const auto id = in_.read<std::uint32_t>("value type");
        const ValueType* type = value_type(id);
        if (type == nullptr) fail(fmt::format("key '{}' has unknown value type {}", pair.key, id));
        pair.type = type->type;
        pair.value = read_value(pair.key, *type);
        if (!index_.pair_by_key.emplace(pair.key, index_.pairs.size()).second) {
            fail(fmt::format("key '{}' occurs twice", pair.key));
        }
        index_.pairs.push_back(pair);
    }

    GgufValue read_value(std::string_view key, const ValueType& type) {
        switch (type.type) {
            case GgufType::u8:
                return std::uint64_t{in_.read<std::uint8_t>(key)};
            case GgufType::u16:
                return std::uint64_t{in_.read<std::uint16_t>(key)};
            case GgufType::u32:
                return std::uint64_t{in_.read<std::uint32_t>(key)};
            case GgufType::u64:
                return in_.read<std::uint64_t>(key);
            case GgufType::i8:
                return std::int64_t{in_.read<std::int8_t>(key)};
            case GgufType::i16:
                return std::int64_t{in_.read<std::int16_t>(key)};
            case GgufType::i32:
                return std::int64_t{in_.read<std::int32_t>(key)};
            case GgufType::i64:
                return in_.read<std::int64_t>(key);
            case GgufType::f32:
                return double{in_.read<float>(key)};
            case GgufType::f64:
                return in_.read<double>(key);
            case GgufType::boolean:
                return read_bool(key);
            case GgufType::string:
                return in_.read_string(kGgufMaxStringBytes, key);
            case GgufType::array:
                return read_array(key);
        }
        fail(fmt::format("key '{}' has an unknown value type", key));
    }

    bool read_bool(std::string_view key) {
        const auto value = in_.read<std::uint8_t>(key);
        if (value > 1) fail(fmt::format("key '{}' is a bool with value {}", key, value));
        return value == 1;
    }

    GgufArray read_array(std::string_view key) {
        GgufArray array;
        const auto id = in_.read<std::uint32_t>(key);
        array.count = in_.read<std::uint64_t>(key);
        const ValueType* type = value_type(id);
        if (type == nullptr) {
            fail(fmt::format("key '{}' is an array of unknown element type {}", key, id));
        }
        if (type->type == GgufType::array) {
            fail(fmt::format("key '{}' is an array of arrays, which is not supported", key));
        }
        array.element = type->type;
        const bool strings = type->type == GgufType::string;
        const std::uint64_t min_bytes = strings ? 8 : type->bytes;
        if (array.count > in_.remaining() / min_bytes) {
            fail(fmt::format("key '{}' states an array of {} elements of type {}, {} bytes remain",
                             key, array.count, type->name, in_.remaining()));
        }
        const std::size_t start = in_.position();
        if (strings) {
            for (std::uint64_t i = 0; i < array.count; ++i) {
                in_.read_string(kGgufMaxStringBytes, key);
            }
        } else {
            in_.take(array.count * min_bytes, key);
        }
        array.bytes = bytes_.subspan(start, in_.position() - start);
        return array;
    }

    void read_alignment() {
        constexpr std::string_view kKey = "general.alignment";
        const GgufPair* pair = index_.find(kKey);
        if (pair == nullptr) return;
        if (pair->type != GgufType::u32) {
            fail(fmt::format("key '{}' must be a u32, it is a {}", kKey,
                             gguf_value_type_name(pair->type)));
        }
        const auto value = std::get<std::uint64_t>(pair->value);
        if (!std::has_single_bit(value) || value < kGgufMinAlignment || value > kGgufMaxAlignment) {
            fail(fmt::format("key '{}' is {}, it must be a power of two from {} to {}", kKey, value,
                             kGgufMinAlignment, kGgufMaxAlignment));
        }
        index_.alignment = value;
    }

    void read_tensor() {
        Tensor tensor;
        tensor.name = in_.read_string(kGgufMaxTensorNameBytes, "tensor name");
        if (tensor.name.empty()) fail(fmt::format("unnamed tensor at byte {}", in_.position()));
        if (!names_.insert(tensor.name).second) {
            fail(fmt::format("tensor '{}' occurs twice", tensor.name));
        }
        const auto n_dims = in_.read<std::uint32_t>(tensor.name);
        if (n_dims < 1 || n_dims > tensor.dims.size()) {
            fail(fmt::format("tensor '{}' has {} dimensions, 1 to {} are allowed", tensor.name,
                             n_dims, tensor.dims.size()));
        }
        tensor.n_dims = static_cast<int>(n_dims);
        std::uint64_t dims[4] = {1, 1, 1, 1};
        for (std::uint32_t i = 0; i < n_dims; ++i) dims[i] = in_.read<std::uint64_t>(tensor.name);
        const auto type_id = in_.read<std::uint32_t>(tensor.name);
        const std::optional<DType> type = dtype_from_gguf(type_id);
        if (!type) {
            fail(fmt::format("tensor '{}' has type {}, which this build cannot read", tensor.name,
                             gguf_type_name(type_id)));
        }
        tensor.type = *type;
        size_tensor(tensor, dims);
        const auto offset = in_.read<std::uint64_t>(tensor.name);
        if (offset % index_.alignment != 0) {
            fail(fmt::format("tensor '{}' has offset {}, not a multiple of the alignment {}",
                             tensor.name, offset, index_.alignment));
        }
        offsets_.push_back(offset);
        index_.tensors.push_back(std::move(tensor));
    }

    void size_tensor(Tensor& tensor, const std::uint64_t (&dims)[4]) const {
        const DTypeInfo& info = dtype_info(tensor.type);
        std::uint64_t elements = 1;
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            if (dims[i] == 0) fail(fmt::format("tensor '{}' has an empty dimension", tensor.name));
            // The cap keeps every later product of extents inside a signed 64-bit integer.
            if (__builtin_mul_overflow(elements, dims[i], &elements) || elements > 1ULL << 62) {
                fail(fmt::format("tensor '{}': its dimensions {} x {} x {} x {} overflow",
                                 tensor.name, dims[0], dims[1], dims[2], dims[3]));
            }
            tensor.dims[i] = static_cast<std::int64_t>(dims[i]);
        }
        if (dims[0] % info.block_elements != 0) {
            fail(fmt::format("tensor '{}' has rows of {} elements, not whole {} blocks of {}",
                             tensor.name, dims[0], info.name, info.block_elements));
        }
        if (__builtin_mul_overflow(elements / info.block_elements, info.block_bytes, &bytes)) {
            fail(fmt::format("tensor '{}': the size of {} {} elements overflows", tensor.name,
                             elements, info.name));
        }
        tensor.bytes = static_cast<std::size_t>(bytes);
    }

    void place_tensors() {
        for (std::size_t i = 0; i < index_.tensors.size(); ++i) {
            Tensor& tensor = index_.tensors[i];
            std::uint64_t begin = 0;
            std::uint64_t end = 0;
            if (__builtin_add_overflow(index_.data_offset, offsets_[i], &begin) ||
                __builtin_add_overflow(begin, std::uint64_t{tensor.bytes}, &end)) {
                fail(fmt::format("tensor '{}': offset {} plus {} bytes overflows", tensor.name,
                                 offsets_[i], tensor.bytes));
            }
            if (end > bytes_.size()) {
                fail(
                    fmt::format("tensor '{}' ends at byte {}, the file has {} bytes; it is "
                                "truncated or its tensor table is wrong",
                                tensor.name, end, bytes_.size()));
            }
            tensor.data = bytes_.data() + begin;
        }
    }

    /// Tables need not be in file order, so neighbours are found by sorting the data addresses.
    void refuse_overlaps() const {
        std::vector<const Tensor*> sorted;
        sorted.reserve(index_.tensors.size());
        for (const Tensor& tensor : index_.tensors) sorted.push_back(&tensor);
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const Tensor* a, const Tensor* b) { return a->data < b->data; });
        const Tensor* bad = nullptr;
        const Tensor* other = nullptr;
        for (std::size_t i = 1; i < sorted.size(); ++i) {
            const Tensor* previous = sorted[i - 1];
            if (previous->data + previous->bytes <= sorted[i]->data) continue;
            // Tensors lie in one vector: the later entry of the table is the one to name.
            const Tensor* later = std::max(previous, sorted[i]);
            if (bad == nullptr || later < bad) {
                bad = later;
                other = std::min(previous, sorted[i]);
            }
        }
        if (bad != nullptr) {
            fail(
                fmt::format("tensor '{}' (offset {}, {} bytes) overlaps tensor '{}' (offset {}, "
                            "{} bytes)",
                            bad->name, offset_of(*bad), bad->bytes, other->name, offset_of(*other),
                            other->bytes));
        }
    }

    std::ptrdiff_t offset_of(const Tensor& tensor) const { return tensor.data - bytes_.data(); }

    std::span<const std::byte> bytes_;
    std::string where_;
    ByteCursor in_;
    GgufIndex index_;
    std::uint64_t n_tensors_ = 0;
    std::uint64_t n_pairs_ = 0;
    std::vector<std::uint64_t> offsets_;
    std::unordered_set<std::string> names_;
};

}  // namespace

std::string_view gguf_value_type_name(GgufType type) {
    const ValueType* found = value_type(static_cast<std::uint32_t>(type));
    return found == nullptr ? "unknown" : found->name;
}

GgufIndex parse_gguf(std::span<const std::byte> bytes, std::string where) {
    return Parser(bytes, std::move(where)).parse();
}

}  // namespace skein::model
