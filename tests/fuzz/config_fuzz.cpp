// A configuration file is foreign bytes: an error with a position, or a configuration that survives
// being shown and read again.
#include <cstdint>
#include <cstdlib>

#include "harnesses/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace skein::harnesses;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    HarnessConfig config;
    try {
        config = parse_config(text, "fuzz", "/base");
    } catch (const ConfigError&) {
        return 0;
    }
    const std::string shown = show_config(config);
    if (show_config(parse_config(shown, "shown", "/base")) != shown) std::abort();
    return 0;
}
