// Oracle of scan in 64-bit integers.
#include <cstdint>

extern "C" void skein_reference(const std::int64_t* sizes, const void* const* inputs,
                                void* const* outputs) {
    const std::int64_t n = sizes[0];
    const std::int32_t* x = static_cast<const std::int32_t*>(inputs[0]);
    std::int32_t* y = static_cast<std::int32_t*>(outputs[0]);
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        sum += x[i];
        y[i] = static_cast<std::int32_t>(sum);
    }
}
