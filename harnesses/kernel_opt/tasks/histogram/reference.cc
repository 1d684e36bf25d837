// Oracle of histogram: one value at a time, nothing shared with the usual way.
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t n = sizes[0];
    const std::uint8_t* data = static_cast<const std::uint8_t*>(inputs[0]);
    std::uint32_t* counts = static_cast<std::uint32_t*>(outputs[0]);
    for (unsigned value = 0; value < 256; ++value) {
        std::uint32_t count = 0;
        for (std::int64_t i = 0; i < n; ++i) count += data[i] == value ? 1u : 0u;
        counts[value] = count;
    }
}
