#include "model/load/printable.h"

#include <fmt/format.h>

namespace skein::model {

std::string printable(std::string_view text, std::size_t max_bytes) {
    std::string out;
    for (const char c : text.substr(0, max_bytes)) {
        if (c == '\n') {
            out += "\\n";
        } else {
            out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
        }
    }
    if (text.size() > max_bytes) out += fmt::format("... ({} bytes)", text.size());
    return out;
}

}  // namespace skein::model
