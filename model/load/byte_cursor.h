#pragma once
// A read position over untrusted little-endian bytes that cannot leave them.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/error.h"
#include "model/load/printable.h"

namespace skein::model {

static_assert(std::endian::native == std::endian::little, "model files are read in place");

class ByteCursor {
  public:
    ByteCursor(std::span<const std::byte> bytes, std::string_view where)
        : bytes_(bytes), where_(where) {}

    std::size_t position() const { return position_; }
    std::size_t remaining() const { return bytes_.size() - position_; }

    /// Takes `n` bytes. Throws: Error saying which item needed how many and what was left.
    std::span<const std::byte> take(std::uint64_t n, std::string_view what) {
        if (n > remaining()) {
            throw Error(fmt::format("{}: {} at byte {} needs {} bytes, {} remain", where_,
                                    printable(what), position_, n, remaining()));
        }
        const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(n));
        position_ += taken.size();
        return taken;
    }

    /// Reads one fixed-width value.
    template <typename T>
    T read(std::string_view what) {
        T value;
        std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
        return value;
    }

    /// Reads a u64 length and that many bytes, refusing lengths above `limit`.
    std::string_view read_string(std::uint64_t limit, std::string_view what) {
        const std::size_t start = position_;
        const auto length = read<std::uint64_t>(what);
        if (length > limit) {
            throw Error(fmt::format("{}: {} at byte {} states a length of {} bytes, limit {}",
                                    where_, printable(what), start, length, limit));
        }
        const auto taken = take(length, what);
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }

  private:
    std::span<const std::byte> bytes_;
    std::string_view where_;
    std::size_t position_ = 0;
};

}  // namespace skein::model
