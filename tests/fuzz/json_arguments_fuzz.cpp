// Arguments of a tool call are text from a model: never a crash, never a repeated key.
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <cstdlib>

#include "tools/json_arguments.h"
#include "tools/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto parsed = skein::tools::parse_arguments(text);
    if (parsed.object.has_value() == !parsed.error.empty()) std::abort();
    if (!parsed.object) return 0;
    // What was accepted is accepted again once written out, and any object may stand as a schema.
    if (!skein::tools::parse_arguments(boost::json::serialize(*parsed.object)).object) std::abort();
    if (!skein::tools::check_schema(*parsed.object)) {
        (void)skein::tools::validate(*parsed.object, *parsed.object);
    }
    return 0;
}
