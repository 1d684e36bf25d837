// The edit on arbitrary bytes: content, old text and new text, separated by 0xFF bytes.
#include <cstdint>
#include <cstdlib>

#include "tools/replacement.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const std::size_t first = bytes.find('\xFF');
    if (first == bytes.npos) return 0;
    const std::size_t second = bytes.find('\xFF', first + 1);
    if (second == bytes.npos) return 0;
    const std::string_view old_text = bytes.substr(0, first);
    const std::string_view new_text = bytes.substr(first + 1, second - first - 1);
    const std::string_view content = bytes.substr(second + 1);
    for (const bool all : {false, true}) {
        const auto done = skein::tools::replace_text(content, old_text, new_text, all);
        if (done.content.has_value() == !done.problem.empty()) std::abort();
        if (!done.content || all) continue;
        // One replacement: the bytes before and after it are untouched.
        const std::string& after = *done.content;
        std::size_t same = 0;
        while (same < after.size() && same < content.size() && after[same] == content[same]) ++same;
        std::size_t tail = 0;
        while (tail < after.size() - same && tail < content.size() - same &&
               after[after.size() - 1 - tail] == content[content.size() - 1 - tail]) {
            ++tail;
        }
        if (content.size() - same - tail > 2 * old_text.size()) std::abort();
    }
    return 0;
}
