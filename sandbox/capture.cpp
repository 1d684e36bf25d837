#include "sandbox/capture.h"

#include <fmt/format.h>

#include <algorithm>

namespace skein::sandbox {

void Capture::add(std::string_view bytes) {
    total_ += bytes.size();
    const std::size_t to_head = std::min(bytes.size(), keep_head_ - head_.size());
    head_.append(bytes.substr(0, to_head));
    bytes.remove_prefix(to_head);
    if (keep_tail_ == 0) return;
    // Only the last keep_tail_ bytes of a large piece can matter.
    if (bytes.size() >= keep_tail_) {
        tail_.assign(bytes.substr(bytes.size() - keep_tail_));
        oldest_ = 0;
        return;
    }
    const std::size_t growth = std::min(bytes.size(), keep_tail_ - tail_.size());
    tail_.append(bytes.substr(0, growth));
    bytes.remove_prefix(growth);
    while (!bytes.empty()) {
        const std::size_t n = std::min(bytes.size(), keep_tail_ - oldest_);
        tail_.replace(oldest_, n, bytes.substr(0, n));
        oldest_ = (oldest_ + n) % keep_tail_;
        bytes.remove_prefix(n);
    }
}

CapturedOutput Capture::take() && {
    CapturedOutput output;
    output.total_bytes = total_;
    std::rotate(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(oldest_), tail_.end());
    output.dropped = total_ - head_.size() - tail_.size();
    output.head = std::move(head_);
    if (output.dropped == 0)
        output.head += tail_;
    else
        output.tail = std::move(tail_);
    return output;
}

std::string CapturedOutput::text() const {
    if (dropped == 0) return head;
    return fmt::format("{}\n[{} bytes of {} dropped here]\n{}", head, dropped, total_bytes, tail);
}

}  // namespace skein::sandbox
