#pragma once
// Keeps the beginning and the end of a stream and counts the rest: memory stays flat whatever a
// command prints.

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox/sandbox.h"

namespace skein::sandbox {

class Capture {
  public:
    Capture(std::size_t keep_head, std::size_t keep_tail)
        : keep_head_(keep_head), keep_tail_(keep_tail) {}

    void add(std::string_view bytes);
    std::uint64_t total_bytes() const { return total_; }
    CapturedOutput take() &&;

  private:
    std::size_t keep_head_, keep_tail_;
    std::string head_;
    std::string tail_;  ///< ring once it is full; `oldest_` is its first byte
    std::size_t oldest_ = 0;
    std::uint64_t total_ = 0;
};

}  // namespace skein::sandbox
