#include "model/load/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "model/error.h"
#include "model/load/byte_cursor.h"
#include "model/load/json_text.h"
#include "model/load/printable.h"

namespace skein::model {
namespace {

namespace json = boost::json;

struct ElementType {
    std::string_view name;
    std::uint64_t bytes;
};
constexpr ElementType kElementTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
    {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8},
};

struct Placed {
    SafetensorsEntry entry;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

class Parser {
  public:
    Parser(std::span<const std::byte> bytes, std::string_view where)
        : where_(where), in_(bytes, where) {}

    SafetensorsIndex parse() {
        const json::value header = read_header();
        const json::object* members = header.if_object();
        if (members == nullptr) fail("the header is not a JSON object");
        placed_.reserve(members->size());
        for (const auto& [name, value] : *members) {
            if (name == "__metadata__") {
                read_metadata(value);
            } else {
                read_entry({name.data(), name.size()}, value);
            }
        }
        std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        check_coverage();
        for (Placed& p : placed_) index_.entries.push_back(std::move(p.entry));
        return std::move(index_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw Error(fmt::format("{}: {}", where_, printable(message, 1000)));
    }

    json::value read_header() {
        const auto length = in_.read<std::uint64_t>("header length");
        if (length > kSafetensorsMaxHeaderBytes) {
            fail(fmt::format("the header length is {} bytes, limit {}", length,
                             kSafetensorsMaxHeaderBytes));
        }
        if (length > in_.remaining()) {
            fail(fmt::format("the header length is {} bytes, the file has {} after it", length,
                             in_.remaining()));
        }
        const auto header = in_.take(length, "header");
        data_ = in_.take(in_.remaining(), "data");
        if (header.empty() || header[0] != std::byte{'{'}) {
            fail(fmt::format("the header ({} bytes) does not start with '{{'", length));
        }
        return parse_json({reinterpret_cast<const char*>(header.data()), header.size()}, where_);
    }

    void read_metadata(const json::value& value) {
        const json::object* members = value.if_object();
        if (members == nullptr) fail("'__metadata__' is not an object");
        for (const auto& [key, text] : *members) {
            if (!text.is_string()) fail("'__metadata__' holds something that is not a string");
            index_.metadata.emplace_back(std::string(key), std::string(text.get_string()));
        }
    }

    std::vector<std::uint64_t> numbers(const std::string& name, const JsonObject& object,
                                       std::string_view key) const {
        const json::value* value = object.find(key);
        const json::array* array = value == nullptr ? nullptr : value->if_array();
        if (array == nullptr) fail(fmt::format("tensor '{}' has no array '{}'", name, key));
        std::vector<std::uint64_t> result;
        for (const json::value& item : *array) {
            const auto* i = item.if_int64();
            if (i == nullptr || *i < 0) {
                fail(fmt::format("tensor '{}': '{}' is {}, expected integers from 0 to 2^63 - 1",
                                 name, key, json::serialize(*value)));
            }
            result.push_back(static_cast<std::uint64_t>(*i));
        }
        return result;
    }

    void read_entry(const std::string& name, const json::value& value) {
        const std::string context = fmt::format("{}: tensor '{}'", where_, printable(name));
        const JsonObject object(value, context);
        Placed placed;
        placed.entry.name = name;
        const auto dtype = object.string("dtype");
        if (!dtype) fail(fmt::format("tensor '{}' has no 'dtype'", name));
        placed.entry.dtype = *dtype;
        placed.entry.shape = numbers(name, object, "shape");
        const std::vector<std::uint64_t> offsets = numbers(name, object, "data_offsets");
        if (offsets.size() != 2 || offsets[0] > offsets[1]) {
            fail(
                fmt::format("tensor '{}': data_offsets must be [begin, end] with begin <= end, "
                            "got [{}]",
                            name, fmt::join(offsets, ", ")));
        }
        placed.begin = offsets[0];
        placed.end = offsets[1];
        check_size(placed);
        placed.entry.data = data_.subspan(static_cast<std::size_t>(placed.begin),
                                          static_cast<std::size_t>(placed.end - placed.begin));
        placed_.push_back(std::move(placed));
    }

    void check_size(const Placed& placed) const {
        const SafetensorsEntry& entry = placed.entry;
        const auto* type =
            std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                         [&](const ElementType& t) { return t.name == entry.dtype; });
        if (type == std::end(kElementTypes)) {
            fail(fmt::format("tensor '{}' has type {}, which this build cannot read", entry.name,
                             entry.dtype));
        }
        std::uint64_t wanted = type->bytes;
        for (const std::uint64_t extent : entry.shape) {
            if (__builtin_mul_overflow(wanted, extent, &wanted)) {
                fail(fmt::format("tensor '{}': the size of shape [{}] overflows", entry.name,
                                 fmt::join(entry.shape, ", ")));
            }
        }
        if (placed.end - placed.begin != wanted) {
            fail(
                fmt::format("tensor '{}': shape [{}] of type {} needs {} bytes, data_offsets "
                            "[{}, {}] give {}",
                            entry.name, fmt::join(entry.shape, ", "), entry.dtype, wanted,
                            placed.begin, placed.end, placed.end - placed.begin));
        }
        if (placed.end > data_.size()) {
            fail(
                fmt::format("tensor '{}' ends at byte {} of the data, the file has {}; it is "
                            "truncated or its header is wrong",
                            entry.name, placed.end, data_.size()));
        }
    }

    void check_coverage() const {
        std::uint64_t end = 0;
        for (const Placed& p : placed_) {
            if (p.begin != end) {
                fail(fmt::format(
                    "tensor '{}' begins at byte {} of the data, expected {}: there is "
                    "{} before it",
                    p.entry.name, p.begin, end, p.begin < end ? "an overlap" : "a hole"));
            }
            end = p.end;
        }
        if (end != data_.size()) {
            fail(fmt::format("{} bytes of data belong to no tensor", data_.size() - end));
        }
    }

    std::string_view where_;
    ByteCursor in_;
    std::span<const std::byte> data_;
    SafetensorsIndex index_;
    std::vector<Placed> placed_;
};

}  // namespace

SafetensorsIndex parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
    return Parser(bytes, where).parse();
}

}  // namespace skein::model
